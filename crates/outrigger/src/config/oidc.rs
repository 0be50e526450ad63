//! `[oidc]`: where people have accounts with which they log in to `outrigger serve`.
//!
//! A stronger file's table takes the place of a weaker one's whole, so that no secret reaches an
//! issuer that it was not meant for.

use outrigger_model::endpoint::{self, ServerAddress};
use outrigger_oidc::{Admission, ClientSettings, NameClaim};
use outrigger_policy::Principal;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

use super::range::Whole;
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;

/// The provider of OpenID Connect with which people log in to `outrigger serve`
/// (`docs/how-to/sign-in.md`). Changes hold from the next start on.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OidcFile {
    /// The provider, by its own name to the letter; if absent, there is none. `https`, or `http`
    /// on this very machine.
    #[cfg_attr(test, schemars(example = &"https://id.example.com/realms/acme"))]
    pub(crate) issuer: Option<String>,
    /// As what the provider knows this server.
    #[cfg_attr(test, schemars(example = &"outrigger"))]
    pub(crate) client_id: Option<String>,
    /// The environment variable that holds the client's secret; if absent, it is a public client,
    /// which has none. The secret itself never stands in a file of ours.
    #[cfg_attr(test, schemars(example = &"OIDC_CLIENT_SECRET"))]
    pub(crate) client_secret_env: Option<String>,
    /// Hosts beside the issuer's that the secret is sent to: where the token endpoint is elsewhere.
    #[cfg_attr(test, schemars(example = ["oauth2.googleapis.com"]))]
    pub(crate) secret_hosts: Vec<String>,
    /// What people call the provider: it stands on the button.
    #[cfg_attr(test, schemars(example = &"Acme", extend("default" = limits::OIDC_NAME_DEFAULT)))]
    pub(crate) name: Option<String>,
    /// What is asked for beside `openid`. Some providers say groups only with a scope of their own.
    #[cfg_attr(test, schemars(extend("default" = ["email", "profile"], "examples" = [["email", "profile", "groups"]])))]
    pub(crate) scopes: Option<Vec<String>>,
    /// The claim that names a person. `email` counts where the provider verified it. A
    /// `preferred_username` or `sub` stands behind the issuer's host, `id.example.com/ada`, so that
    /// nobody is taken for another by a name that they chose.
    #[cfg_attr(test, schemars(extend("default" = "email")))]
    pub(crate) person_claim: Option<PersonClaim>,
    /// The claim that holds the groups of a person, or what is within one: `realm_access.roles`.
    #[cfg_attr(test, schemars(extend("default" = "groups")))]
    pub(crate) groups_claim: Option<String>,
    /// Values of that claim, each with the groups of ours that it stands for, roles among them.
    /// Whoever has one of these values is let in.
    #[cfg_attr(test, schemars(example = BTreeMap::from([("/platform/admins", ["admin"])])))]
    pub(crate) groups: BTreeMap<String, BTreeSet<String>>,
    /// Further values of that claim with which somebody is let in.
    #[cfg_attr(test, schemars(example = ["/everybody"]))]
    pub(crate) allow_groups: BTreeSet<String>,
    /// Domains of e-mail addresses, which the provider has to have verified, with which somebody is
    /// let in.
    #[cfg_attr(test, schemars(example = ["example.com"]))]
    pub(crate) allow_domains: BTreeSet<String>,
    /// Whether everybody is let in whom the provider knows. Otherwise it is who has one of the
    /// values or domains above, or is named in the file of `policy.people`.
    pub(crate) allow_everybody: bool,
    /// Hours that a login lasts, in browsers and for the person's programs; then they log in again.
    #[cfg_attr(test, schemars(extend("default" = limits::OIDC_HOURS_DEFAULT)))]
    pub(crate) login_hours: Option<Whole<1, 720>>,
}

/// Which claim names a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum PersonClaim {
    Email,
    PreferredUsername,
    Sub,
}

/// The provider, as it is configured.
#[derive(Debug, Clone)]
pub(crate) struct Oidc {
    /// As people call it.
    pub(crate) name: String,
    pub(crate) client: ClientSettings,
    pub(crate) secret_env: Option<String>,
    /// Where the secret is sent.
    pub(crate) secret_to: Vec<ServerAddress>,
    pub(crate) person: NameClaim,
    pub(crate) groups_claim: String,
    /// Groups of ours, by the values that stand for them.
    pub(crate) groups: BTreeMap<String, BTreeSet<String>>,
    pub(crate) admission: Admission,
    pub(crate) lives_ms: u64,
}

fn wrong(what: &str) -> Failure {
    Failure::new(Kind::Usage, format!("[oidc] {what}"))
        .hint("docs/how-to/sign-in.md shows how a provider is configured.")
}

fn server(url: &str, key: &str) -> Outcome<ServerAddress> {
    endpoint::server(url).map_err(|error| wrong(&format!("`{key}`: `{url}`: {error}")))
}

impl Oidc {
    /// What a file says; nothing, where it says nothing of a provider.
    pub(crate) fn of(file: OidcFile) -> Outcome<Option<Self>> {
        let Some(issuer) = file.issuer else {
            return match file.client_id {
                Some(_) => Err(wrong("names a `client_id` and no `issuer`")),
                None => Ok(None),
            };
        };
        let client_id =
            file.client_id.ok_or_else(|| wrong("names an `issuer` and no `client_id`"))?;
        let mut secret_to = vec![server(&issuer, "issuer")?];
        for host in &file.secret_hosts {
            secret_to.push(server(&format!("https://{host}"), "secret_hosts")?);
        }
        for group in file.groups.values().flatten() {
            if format!("group:{group}").parse::<Principal>().is_err() {
                return Err(wrong(&format!("`groups`: `{group}` can't be the name of a group")));
            }
        }
        let person = match file.person_claim {
            None | Some(PersonClaim::Email) => NameClaim::Email,
            Some(PersonClaim::PreferredUsername) => NameClaim::PreferredUsername,
            Some(PersonClaim::Sub) => NameClaim::Subject,
        };
        let scopes = file.scopes.unwrap_or_else(|| ["email", "profile"].map(str::to_owned).into());
        let scopes = scopes.into_iter().filter(|scope| scope != "openid").collect();
        let groups_claim = file.groups_claim.unwrap_or_else(|| "groups".to_owned());
        let let_in = file.groups.keys().cloned().chain(file.allow_groups).collect();
        let admission = Admission {
            everybody: file.allow_everybody,
            groups: let_in,
            domains: file.allow_domains.iter().map(|it| it.to_ascii_lowercase()).collect(),
        };
        let claims = claims(person, &groups_claim, &admission);
        let hours = file.login_hours.map_or(limits::OIDC_HOURS_DEFAULT, Whole::get);
        Ok(Some(Self {
            name: file.name.unwrap_or_else(|| limits::OIDC_NAME_DEFAULT.to_owned()),
            client: ClientSettings { issuer, client_id, scopes, claims },
            secret_env: file.client_secret_env,
            secret_to,
            person,
            groups_claim,
            groups: file.groups,
            admission,
            lives_ms: hours * 3_600_000,
        }))
    }
}

/// The claims that are looked at.
fn claims(person: NameClaim, groups_claim: &str, admission: &Admission) -> Vec<String> {
    let email = person == NameClaim::Email || !admission.domains.is_empty();
    let wanted = [
        (email, "email"),
        (email, "email_verified"),
        (person == NameClaim::PreferredUsername, "preferred_username"),
        (!admission.groups.is_empty(), groups_claim),
    ];
    wanted.into_iter().filter(|(wanted, _)| *wanted).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Oidc>, String> {
        let file = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Oidc::of(file).map_err(|failure| failure.message)
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(read("").unwrap().is_none());
        let most = "issuer = 'https://id.example'\n";
        for (text, said) in [
            ("client_id = 'a'", "no `issuer`"),
            (most, "no `client_id`"),
            ("issuer = 'id.example'\nclient_id = 'a'", "not a URL"),
            (&format!("{most}client_id = 'a'\nsecret_hosts = ['a/b?c']"), "secret_hosts"),
            (&format!("{most}client_id = 'a'\ngroups = {{ x = ['a b'] }}"), "name of a group"),
            (&format!("{most}client_id = 'a'\nclient_secret = 'x'"), "unknown field"),
            (&format!("{most}client_id = 'a'\nperson_claim = 'name'"), "unknown variant"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_asked_for_is_what_is_looked_at() {
        let oidc = |more: &str| {
            let text = format!("issuer = 'https://id.example'\nclient_id = 'a'\n{more}");
            read(&text).unwrap().unwrap()
        };
        assert_eq!(oidc("").client.claims, ["email", "email_verified"]);
        let named =
            oidc("person_claim = 'sub'\nscopes = ['openid', 'groups']\ngroups = { x = ['admin'] }");
        assert_eq!(
            (named.client.claims, named.client.scopes),
            (vec!["groups".into()], vec!["groups".into()])
        );
        assert!(named.admission.groups.contains("x") && !named.admission.everybody);
    }
}
