//! Templates of the native backend: root filesystems out of images.

use clap::Subcommand;
use outrigger_sandbox::Error;
use outrigger_sandbox_native::{Archive, Native, Registry, Template, is_of_project};
use serde_json::json;
use std::path::Path;

use super::context::removed;
use crate::compose;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::image;
use crate::paths::Paths;
use crate::sandbox::failed;
use crate::show::{self, Screen, Tone, inert};

#[derive(Debug, Subcommand)]
pub(crate) enum Templates {
    /// List templates.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Remove templates. Sandboxes that stand on them stay as they are.
    Rm {
        /// The templates.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
}

pub(super) async fn import(
    paths: &Paths,
    config: &Config,
    name: &str,
    file: &Path,
    output: Output,
) -> Outcome<u8> {
    let unreadable =
        |error: std::io::Error| Failure::new(Kind::Usage, format!("{}: {error}", file.display()));
    let opened = if file == Path::new("-") { Path::new("/dev/stdin") } else { file };
    let archive = Archive::new(std::fs::File::open(opened).map_err(unreadable)?);
    let native = compose::native(paths, config, None).await?;
    let made = image::import(&native, name, archive, &mut Screen::new(output)).await;
    tell(&made.map_err(|error| failed(&error))?, output)
}

pub(super) async fn pull(
    paths: &Paths,
    config: &Config,
    name: &str,
    source: &Registry,
    output: Output,
) -> Outcome<u8> {
    let native = compose::native(paths, config, None).await?;
    let made = image::pull(paths, &native, name, source, &mut Screen::new(output)).await;
    tell(&made.map_err(|error| failed(&error))?, output)
}

fn object(template: &Template) -> serde_json::Value {
    let layers: Vec<String> = template.layers.iter().map(ToString::to_string).collect();
    json!({
        "name": template.name,
        "layers": layers,
        "source": template.source,
        "manifest": template.manifest.as_ref().map(ToString::to_string),
        "made_at_ms": template.made_at_ms,
    })
}

fn tell(template: &Template, output: Output) -> Outcome<u8> {
    if output.json.is_some() {
        show::line(&json!({ "type": "template", "template": object(template) }))?;
    } else {
        show::out(&template.name)?;
    }
    Ok(0)
}

/// Templates that people made. Those of projects are made and removed by themselves.
pub(crate) async fn images(native: &Native) -> Result<Vec<Template>, Error> {
    let mut all = native.templates().await?;
    all.retain(|template| !is_of_project(&template.name));
    Ok(all)
}

pub(super) async fn ls(paths: &Paths, config: &Config, output: Output) -> Outcome<u8> {
    let all = images(&*compose::native(paths, config, None).await?).await;
    let all = all.map_err(|error| failed(&error))?;
    if output.json.is_some() {
        let all: Vec<_> = all.iter().map(object).collect();
        show::line(&json!({ "type": "templates", "templates": all }))?;
        return Ok(0);
    }
    let width = all.iter().map(|template| template.name.len()).max().unwrap_or(0);
    for template in &all {
        let (name, when) = (&template.name, show::when(template.made_at_ms));
        let layers = show::count(template.layers.len() as u64, "layer");
        show::row(&format!("{name:width$}  {when}  {layers}  {}", inert(&template.source)))?;
    }
    if all.is_empty() {
        let text = "no templates but `host-tools`, this machine's own programs";
        Screen::new(output).note(Tone::Detail, text);
    }
    Ok(0)
}

pub(super) async fn remove(
    paths: &Paths,
    config: &Config,
    names: &[String],
    output: Output,
) -> Outcome<u8> {
    let native = compose::native(paths, config, None).await?;
    for name in names {
        native.remove_template(name).await.map_err(|error| failed(&error))?;
    }
    removed(names, output)
}
