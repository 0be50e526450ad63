//! `outrigger serve`: one process that drives the sessions of a directory, and shows them.
//!
//! Owns where it listens, how it begins and how it ends. Who is let in and what is answered is
//! the server's; sessions are opened and driven by `serve::host`.

mod agents;
mod changes;
mod context;
mod disks;
mod exporter;
mod failure;
mod files;
mod host;
mod jobs;
mod left;
mod log;
mod observation;
mod opening;
mod sandboxes;
mod secrets;
mod service_manager;
mod sign_in;
mod skills;
mod triggers;
mod uploads;

use clap::Args;
use outrigger_engine::{Feed, SystemClock};
use outrigger_server::{Origins, Server, Services, limits, new_key};
use outrigger_store::{KeyKind, Notices};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::command::task;
use crate::config::{Config, ModelChoice};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Limits, Model, Net, Output};
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::show::{self, Screen, Tone};
use crate::{compose, models, session, trust, workspace};
use agents::ServedAgents;
use context::ServeContext;
use disks::Disks;
use host::Host;
use log::{LogFormat, ServerLog};
use observation::Observation;
use sandboxes::PersonSandboxes;
use secrets::HostSecrets;
use service_manager::ServiceManager;
use sign_in::HostLogins;
use skills::ServedSkills;
use triggers::Triggers;

/// How it is served.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen. Only this machine reaches the usual address; for others put a proxy that
    /// speaks TLS in front and name it with --url.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7373",
        value_parser = address
    )]
    listen: SocketAddr,
    /// By which address people reach it, where that is another one, for example
    /// `https://agents.example.com`.
    #[arg(long, value_name = "URL", value_parser = origin)]
    url: Option<String>,
    /// The directory that sessions work on a copy of.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    net: Net,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) output: Output,
    /// What it says on standard error while it runs: lines for people, or an object in JSON for
    /// each request and for each thing that a session did.
    #[arg(
        long,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    log_format: LogFormat,
    /// It listens there already.
    #[arg(skip)]
    listener: Option<TcpListener>,
    #[arg(skip)]
    manager: ServiceManager,
}

const GRACE: Duration = Duration::from_millis(crate::limits::SERVE_GRACE_MS_MAX);
const ENDS: &str = "  ending; sessions that run go on with the next `outrigger serve`";

/// Lets this process have as many descriptors as many sessions need: a shell allows 1,024 at
/// first. Where that can't be, what can't be opened says so.
fn allow_files() {
    let files = getrlimit(Resource::Nofile);
    let most = crate::limits::SERVE_FILES_MAX;
    let most = files.maximum.map_or(most, |maximum| maximum.min(most));
    if files.current.is_some_and(|current| current < most) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..files });
    }
}

/// Where to listen, as people write it: a port alone is one of this machine.
fn address(said: &str) -> Result<SocketAddr, String> {
    let port = said.strip_prefix("localhost:").unwrap_or(said);
    match (port.parse(), said.parse()) {
        (Ok(port), _) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        (_, Ok(address)) => Ok(address),
        _ => Err("name an address and a port, for example 127.0.0.1:7373".to_owned()),
    }
}

/// An address as browsers write it in front of their requests.
fn origin(said: &str) -> Result<String, String> {
    let said = said.strip_suffix('/').unwrap_or(said);
    let rest = said.strip_prefix("https://").or_else(|| said.strip_prefix("http://"));
    let plain = |rest: &str| !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']);
    match rest {
        Some(rest) if plain(rest) => Ok(said.to_ascii_lowercase()),
        _ => Err("name a scheme and a host, for example https://agents.example.com".to_owned()),
    }
}

impl Serve {
    /// Begins to listen, before the process is confined.
    pub(crate) fn listen(&mut self) -> Outcome {
        if !self.listen.ip().is_loopback() && self.url.is_none() {
            let text = format!(
                "{} is reached by others, and what they send could be read on the way",
                self.listen
            );
            return Err(Failure::new(Kind::Usage, text)
                .hint("Put a proxy that speaks TLS in front of it, and name its address with --url https://HOST.")
                .hint("Without --listen only this machine reaches the server."));
        }
        let listener = TcpListener::bind(self.listen).map_err(|error| {
            let text = format!("{} can't be listened on: {error}", self.listen);
            Failure::new(Kind::Conflict, text)
                .hint("Another `outrigger serve` may run already: its page shows all sessions.")
                .hint("--listen 127.0.0.1:0 takes a free port.")
        })?;
        listener
            .set_nonblocking(true)
            .map_err(|error| Failure::from_error(Kind::Storage, &error))?;
        self.listener = Some(listener);
        self.manager = ServiceManager::of_environment();
        allow_files();
        Ok(())
    }

    /// By which addresses people may come.
    fn origins(&self, at: SocketAddr) -> Origins {
        let own = [format!("http://{at}"), format!("http://localhost:{}", at.port())];
        Origins::new(self.url.clone().into_iter().chain(own).collect())
    }
}

/// Serves until it is told to end.
pub(crate) async fn execute(paths: &Paths, mut asked: Serve) -> Outcome<u8> {
    let failed = |error: std::io::Error| Failure::from_error(Kind::Storage, &error);
    let listener = asked.listener.take().map(tokio::net::TcpListener::from_std);
    let listener = listener.transpose().map_err(failed)?;
    let listener = listener.ok_or_else(|| Failure::new(Kind::Usage, "nothing was listened on"))?;
    let screen = Screen::new(asked.output);
    let log = ServerLog::new(asked.log_format, asked.output);
    let origins = asked.origins(listener.local_addr().map_err(failed)?);
    let context = Arc::new(context(paths, &asked, &origins, (&screen, log)).await?);
    let (store, feed) = (&context.store, Feed::default());
    let notices = store.database.serve();
    let engine = compose::clerk(paths, &context.config, store)?.with_feed(feed.clone());
    let (jobs, queue) = jobs::jobs();
    let host = Host::new(Arc::clone(&context), feed, jobs.clone());
    let disks = Arc::new(Disks::new(Arc::clone(&context), host.clone(), jobs.clone()));
    let triggers = Triggers::new(Arc::clone(&context), host.clone());
    let agents = ServedAgents::new(Arc::clone(&context), triggers.clone(), jobs.clone());
    let sandboxes = Arc::new(PersonSandboxes::new(Arc::clone(&context)));
    let observation = Arc::new(Observation::new(&context)?);
    let parts = Services {
        engine,
        journal: Arc::clone(&store.journal),
        keys: Arc::clone(&store.database) as _,
        entries: Arc::clone(&store.entries),
        reviews: Arc::clone(&store.reviews),
        accounts: Arc::clone(&store.accounts),
        usual: context.config.usual(),
        store: paths.harness().to_owned(),
        database: paths.database().clone(),
        host: Arc::new(host.clone()),
        uploads: Arc::new(host.clone()),
        agents: Arc::new(agents),
        skills: Arc::new(ServedSkills::new(Arc::clone(&context))),
        changes: Arc::clone(&disks) as _,
        disks,
        sandbox_egress: Arc::clone(&sandboxes) as _,
        snapshots: Arc::clone(&sandboxes) as _,
        sandboxes,
        scratch: paths.scratch(),
        secrets: Arc::new(HostSecrets::new(Arc::clone(&context), jobs.clone())),
        logins: Arc::new(HostLogins::new(Arc::clone(&context))?),
        observer: Arc::clone(&observation) as _,
        clock: Arc::new(SystemClock),
        origins: origins.clone(),
    };
    let link = link(store, &origins).await?;
    let (end, ends) = watch::channel(false);
    let told_to_end = told_to_end().map_err(failed)?;
    tell(log, &asked, &origins, link.as_deref())?;
    let serving = outrigger_server::serve(Server::new(parts, ends), listener);
    let stopped = async {
        told_to_end.await;
        log.note(Tone::Detail, ENDS);
        asked.manager.stopping();
        let _ = end.send(true);
        // A request that does not end in time ends with the process.
        tokio::time::sleep(GRACE).await;
    };
    let whole = async {
        tokio::select! {
            served = serving => served.map_err(failed),
            () = stopped => Ok(()),
            () = queue.work() => Ok(()),
            () = go_on(&host, &triggers, (notices, log)) => Ok(()),
            () = observation.export() => Ok(()),
        }
    };
    // The jobs are tasks of it.
    let served = Box::pin(tokio::task::LocalSet::new().run_until(whole)).await;
    observation.flush().await;
    served.map(|()| 0)
}

/// Goes on with what a server before left, and then with whatever is to be driven.
async fn go_on(host: &Host, triggers: &Triggers, (notices, log): (Notices, ServerLog)) {
    let went_on = host.go_on().await;
    if went_on > 0 {
        let sessions = show::count(went_on, "session");
        log.note(Tone::Detail, &format!("  {sessions} went on where they were"));
    }
    tokio::join!(triggers.run(), host.watch(), host.hear(notices));
}

/// Over when this process is told to end, from now on.
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// What everything that serves has, after whoever begins it was asked what has to be asked.
async fn context(
    paths: &Paths,
    asked: &Serve,
    origins: &Origins,
    (screen, log): (&Screen, ServerLog),
) -> Outcome<ServeContext> {
    let mut config = Config::load(paths.configs(), &asked.model, asked.limits)?;
    config.reach(&asked.net)?;
    check(&config)?;
    let model = models::choose(paths, &config.model).await?;
    let dir = std::fs::canonicalize(&asked.dir).map_err(|error| {
        Failure::new(Kind::NotFound, format!("{}: {error}", asked.dir.display()))
            .hint("Name a directory that is there with --dir.")
    })?;
    // One that can't be read is told whoever begins the server, and not each who asks it.
    if matches!(model, ModelChoice::Script(_)) {
        models::open(paths, &model).await?;
    }
    if matches!(model, ModelChoice::Unset) {
        let text = "! no model is chosen: `outrigger init` says which there are; then begin anew";
        log.note(Tone::Warning, text);
    }
    let tree = workspace::tree(&dir)?;
    // Who begins the server is the last who can be asked.
    trust::ask(paths, &tree.top, ProjectFile::all(&tree), screen).await?;
    let store = compose::store(paths).await?;
    // Once: it looks at each session that runs.
    task::give_back(paths, &config, &store).await?;
    let rules = store.rules(paths)?;
    let page = origins.first().to_owned();
    Ok(ServeContext { paths: paths.clone(), config, model, dir, store, rules, page, log })
}

/// Whether what the configuration names is there. Who begins the server can mend it, and who asks
/// it for a session can't.
fn check(config: &Config) -> Outcome {
    config.read_only_is_there()?;
    drop(config.budget.prices_of("", true)?);
    let mut agents = config.agents.all().iter();
    agents.try_for_each(|(name, file)| agents::check_tools(name, file, config))
}

/// A link that logs one browser in.
async fn link(store: &compose::Store, origins: &Origins) -> Outcome<Option<String>> {
    if !show::is_heard() {
        return Ok(None);
    }
    let of = (KeyKind::Link, session::WHO, "the link of outrigger serve");
    let lives = (session::now_ms(), limits::LINK_MS_MAX);
    let made = new_key(&*store.database, of, lives).await.map_err(failure::of_request)?;
    Ok(Some(format!("{}/login?token={}", origins.first(), made.secret)))
}

fn tell(log: ServerLog, asked: &Serve, origins: &Origins, link: Option<&str>) -> Outcome {
    asked.manager.ready();
    if asked.output.json.is_some() {
        let object = json!({ "type": "serving", "url": origins.first(), "link": link });
        return show::line(&object);
    }
    log.note(Tone::Good, &format!("● serving at {}", origins.first()));
    let Some(link) = link else {
        log.note(Tone::Detail, "  `outrigger keys link` makes a link that logs a browser in.");
        return Ok(());
    };
    log.note(Tone::Detail, "  Open this link in a browser; it logs in once, within 15 minutes:");
    show::out(link)?;
    log.note(Tone::Detail, "  Ctrl-C ends the server. What runs goes on with the next one.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{address, origin};

    #[test]
    fn a_port_is_one_of_this_machine() {
        let own = Ok("127.0.0.1:80".parse().unwrap());
        assert_eq!(
            ["80", "localhost:80", "127.0.0.1:80"].map(address),
            [own.clone(), own.clone(), own]
        );
        assert_eq!(address("[::1]:80"), Ok("[::1]:80".parse().unwrap()));
        for wrong in ["", "99999", "here:80", "127.0.0.1"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_a_scheme_and_a_host() {
        assert_eq!(origin("https://Agents.example.com/"), Ok("https://agents.example.com".into()));
        assert_eq!(origin("http://10.0.0.1:8080"), Ok("http://10.0.0.1:8080".into()));
        for wrong in ["agents.example.com", "https://", "https://a/b", "https://a b", "ftp://a"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
