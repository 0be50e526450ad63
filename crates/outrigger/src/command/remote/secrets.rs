//! `outrigger secrets` at a server.

use outrigger_api::{RotateSecret, SecretInfo, SecretList};

use super::connection::Remote;
use crate::command::secrets::{
    Secrets, example, hidden_value, print_grants, print_secrets, told_revoked, told_rotated,
    told_set,
};
use crate::exit::{Failure, Kind, Outcome};
use crate::network::SecretUse;

pub(super) async fn execute(remote: &Remote, asked: Secrets) -> Outcome<u8> {
    let output = asked.output();
    match asked {
        Secrets::Set(asked) => {
            let (name, mut said) = asked.said();
            // What it would refuse is told before the value is asked for.
            let terms = SecretUse::from(said.clone()).terms(&name, said.days);
            terms.map_err(|failure| example(failure, &name))?;
            said.value =
                hidden_value(&name, output).await?.trim_end_matches(['\r', '\n']).to_owned();
            let kept: SecretInfo = remote.client.put(&at(&name), &said).await?;
            told_set(&kept, output)?;
        }
        Secrets::Ls { .. } => print_secrets(&all(remote).await?, output)?,
        Secrets::Grants { name, .. } => print_grants(&existing(remote, &name).await?, output)?,
        Secrets::Rotate { name, .. } => {
            existing(remote, &name).await?;
            let value =
                hidden_value(&name, output).await?.trim_end_matches(['\r', '\n']).to_owned();
            let path = format!("{}/rotate", at(&name));
            let kept: SecretInfo = remote.client.post(&path, &RotateSecret { value }).await?;
            told_rotated(&kept, output)?;
        }
        Secrets::Revoke { name, .. } => {
            let kept = existing(remote, &name).await?;
            remote.client.delete(&at(&name)).await?;
            told_revoked(&kept, output)?;
        }
    }
    Ok(0)
}

fn at(name: &str) -> String {
    format!("/v1/secrets/{name}")
}

async fn all(remote: &Remote) -> Outcome<Vec<SecretInfo>> {
    Ok(remote.client.get::<SecretList>("/v1/secrets").await?.data)
}

async fn existing(remote: &Remote, name: &str) -> Outcome<SecretInfo> {
    all(remote).await?.into_iter().find(|secret| secret.name == name).ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no secret {name}"))
            .hint("`outrigger secrets ls` lists them.")
    })
}
