//! A secret as people and programs are told of it: all but its value.

use outrigger_api::{SecretGrant, SecretInfo, SetSecret};
use outrigger_gate::SecretPlace;

use super::keeper::places_of;
use super::secret_use::SecretUse;
use super::secrets::KeptSecret;

impl From<KeptSecret> for SecretInfo {
    fn from(secret: KeptSecret) -> Self {
        let KeptSecret { stored, sealed } = secret;
        Self {
            places: places_of(&sealed),
            name: stored.name,
            set_by: stored.set_by,
            created_ms: stored.created_ms,
            changed_ms: stored.changed_ms,
            ends_ms: sealed.terms.ends_ms,
            grants: sealed.terms.places.into_iter().map(grant).collect(),
        }
    }
}

fn grant(place: SecretPlace) -> SecretGrant {
    let SecretPlace { grant, headers, queries, fields, mints, aws_key_id, refs } = place;
    SecretGrant {
        host: grant.host,
        port: grant.port,
        methods: grant.methods,
        paths: grant.paths,
        required_queries: grant.queries,
        headers,
        queries,
        fields,
        mints,
        aws_key_id,
        refs,
    }
}

impl From<SetSecret> for SecretUse {
    fn from(said: SetSecret) -> Self {
        Self {
            hosts: said.hosts,
            git: said.git,
            branches: said.branches,
            fetch_only: said.fetch_only,
            methods: said.methods,
            headers: said.headers,
            queries: said.queries,
            fields: said.fields,
            mints: said.mints,
            aws_key_id: said.aws_key_id,
            webhook: said.webhook,
        }
    }
}
