//! All figures, of all routes in turn.
//!
//! Owns that routes are visited by turns, so that a machine that is slower for a while is so
//! for each of them, and that a peer that fails costs nobody else a figure.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Resource;

use crate::figure::Figure;
use crate::gate::Gate;
use crate::host::{self, Authority};
use crate::limits;
use crate::peer::{self, Peer};
use crate::route::Route;
use crate::visit::Visit;
use crate::{Options, progress};

/// What came of it.
pub(crate) struct Report {
    pub(crate) figures: Vec<Figure>,
    /// What is to be known beside them.
    pub(crate) notes: Vec<String>,
}

/// A route that is compared.
struct Contender {
    name: &'static str,
    route: Route,
    /// Nobody can do without it.
    needed: bool,
}

/// Measures everything. What it starts ends with it.
pub(crate) async fn measure(options: Options) -> io::Result<Report> {
    let place = tempfile::tempdir()?;
    // Of a peer that gives up being root.
    fs::set_permissions(place.path(), Permissions::from_mode(0o711))?;
    let authority = Authority::new()?;
    let roots = place.path().join("roots.pem");
    fs::write(&roots, authority.pem())?;
    allow_files()?;
    let load = load()?;
    let host = host::start(&authority)?;
    let gate = Gate::new(place.path(), &roots)?;
    let direct = Route::new(host, None, authority.pem())?;
    let through = gate.open("bench", host).await?;
    let mut contenders = vec![
        Contender { name: "direct", route: direct, needed: true },
        Contender { name: "gate", route: through, needed: true },
    ];
    let mut notes = Vec::new();
    let mut peers: Vec<Peer> = Vec::new();
    let squid = peer::squid(options.squid, place.path(), &roots).await;
    let mitmproxy = peer::mitmproxy(options.mitmdump, place.path(), &roots).await;
    for (name, peer) in [("squid", squid), ("mitmproxy", mitmproxy)] {
        match peer {
            Ok(peer) => {
                let route = Route::new(host, Some(peer.address), &peer.authority)?;
                contenders.push(Contender { name, route, needed: false });
                peers.push(peer);
            }
            Err(why) => notes.push(format!("not measured: {why}")),
        }
    }
    let mut figures = Vec::new();
    for visit in Visit::ALL {
        progress(&format!("{visit:?}, {} rounds of {} routes", visit.rounds(), contenders.len()));
        figures.extend(compare(visit, &contenders, &mut notes).await?);
    }
    drop(peers);
    progress("memory of the gate");
    figures.extend(memory(&gate, host).await?);
    notes.push(format!("load of the machine: {load} before, {} after", self::load()?));
    Ok(Report { figures, notes })
}

/// One figure of each route, and what it adds if it is a time.
async fn compare(
    visit: Visit,
    contenders: &[Contender],
    notes: &mut Vec<String>,
) -> io::Result<Vec<Figure>> {
    let mut samples = vec![Vec::new(); contenders.len()];
    let mut failed = vec![false; contenders.len()];
    for round in 0..visit.rounds() {
        for turn in 0..contenders.len() {
            // Each is first, and after each other, in turn.
            let at = (round + turn) % contenders.len();
            let contender = &contenders[at];
            if failed[at] {
                continue;
            }
            match visit.of(&contender.route).await {
                Ok(more) => samples[at].extend(more),
                Err(error) if contender.needed => return Err(error),
                Err(error) => {
                    notes.push(format!("not measured: {visit:?} of {}: {error}", contender.name));
                    failed[at] = true;
                }
            }
        }
    }
    let taken = contenders.iter().zip(samples).zip(&failed).filter(|(_, failed)| !**failed);
    let taken = taken.map(|((contender, samples), _)| visit.figure(contender.name, samples));
    let mut taken = taken.collect::<Vec<_>>().into_iter();
    let direct = taken.next().expect("the first route is the direct one, and is needed");
    let mut figures = vec![direct.clone()];
    for figure in taken {
        let added = visit.is_time().then(|| figure.added_to(&direct));
        figures.push(figure.beside(&direct));
        figures.extend(added);
    }
    Ok(figures)
}

/// Memory of the gate after all that, without connections and with many.
async fn memory(gate: &Gate, host: SocketAddr) -> io::Result<Vec<Figure>> {
    let figure = |name: &str, mib| Figure::of(format!("rss/{name}"), "MiB", vec![mib]);
    let before = figure("before", gate.resident_mib()?);
    let mut open = Vec::new();
    for number in 0..limits::OPEN_SANDBOXES {
        let route = gate.open(&format!("open-{number}"), host).await?;
        for _ in 0..limits::OPEN_CONNECTIONS_EACH {
            let mut connection = route.connect().await?;
            connection.ask().await?;
            open.push(connection);
        }
    }
    Ok(vec![before, figure("1000_connections", gate.resident_mib()?)])
}

/// Lets the gate, which inherits it, and us have as many files open as it takes.
fn allow_files() -> io::Result<()> {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < limits::OPEN_FILES) {
        limit.current = Some(limits::OPEN_FILES);
        rustix::process::setrlimit(Resource::Nofile, limit)?;
    }
    Ok(())
}

/// Processes that want a processor, on average of the last minute.
fn load() -> io::Result<String> {
    let load = fs::read_to_string("/proc/loadavg")?;
    let processors = std::thread::available_parallelism()?;
    let load = load.split(' ').next().unwrap_or_default();
    Ok(format!("{load} on {processors} processors"))
}
