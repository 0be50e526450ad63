//! `outrigger agents` at a server.

use outrigger_api::{AgentInfo, AgentList};

use super::connection::Remote;
use super::memory::RemoteFile;
use crate::agents::definition;
use crate::command::agents::{AgentLine, Agents, print_agents, read, told};
use crate::command::memory::edit::EditedFile;
use crate::config::AgentName;
use crate::exit::{Failure, Kind, Outcome};

pub(super) async fn execute(remote: &Remote, asked: Agents) -> Outcome<u8> {
    let output = asked.output();
    match asked {
        Agents::Ls { .. } => {
            let agents: AgentList = remote.client.get("/v1/agents").await?;
            print_agents(&agents.data.into_iter().map(line).collect::<Vec<_>>(), output)?;
        }
        Agents::Set { name, file, to, .. } => {
            let usage = |why: String| Failure::new(Kind::Usage, why);
            let name = AgentName::parse(name).map_err(usage)?.into_inner();
            let text = read(&file)?;
            definition(&file.display().to_string(), &text)?;
            let owner = match to.as_str() {
                "user" | "organisation" => to,
                group => format!("group/{group}"),
            };
            let path = format!("/agents/{owner}/{name}.toml");
            let kept = RemoteFile { remote, path };
            let (base, _) = kept.current().await?;
            let written = kept.write(base, text.into_bytes(), None).await?;
            told(&name, &kept.path, written, output)?;
        }
    }
    Ok(0)
}

fn line(info: AgentInfo) -> AgentLine {
    AgentLine {
        name: info.name,
        place: info.path.unwrap_or_else(|| "configuration".to_owned()),
        what: match info.problem {
            Some(problem) => Err(problem),
            None => Ok(info.definition.description.unwrap_or_default()),
        },
    }
}
