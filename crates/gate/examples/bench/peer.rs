//! Proxies of others that end TLS too, as far as they are installed.
//!
//! Owns how they are started: as they come, with no more settings than it takes to trust
//! the host, to sign for it, and to pass a body on while it arrives.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::host::Authority;
use crate::limits;

/// What makes squid's certificates, where Debian has it.
const SQUID_CERTIFICATES: &str = "/usr/lib/squid/security_file_certgen";
/// Where Linux shows memory that processes share (shm_overview(7)).
const SHARED_MEMORY: &str = "/dev/shm";

/// A proxy that runs. Its processes end with it.
pub(crate) struct Peer {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Who signs for the host.
    pub(crate) authority: String,
    /// How the names of its shared memory begin. It stays when squid is killed.
    shared: Option<String>,
}

/// A program: the one that was asked for, or where the shell finds it.
fn program(asked: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.push("/usr/sbin".into());
    asked.or_else(|| dirs.iter().map(|dir| dir.join(name)).find(|path| path.is_file()))
}

/// A port that nobody has.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// squid, which decrypts with `ssl-bump`.
///
/// # Errors
/// Why it is not measured.
pub(crate) async fn squid(
    asked: Option<PathBuf>,
    dir: &Path,
    roots: &Path,
) -> Result<Peer, String> {
    let program = program(asked, "squid")
        .filter(|_| Path::new(SQUID_CERTIFICATES).is_file())
        .ok_or("squid is not installed (apt-get install squid-openssl)")?;
    let started = start_squid(&program, &dir.join("squid"), roots);
    let peer = started.map_err(|error| format!("squid does not start: {error}"))?;
    peer.ready().await.map_err(|error| format!("squid does not start: {error}"))
}

fn start_squid(program: &Path, dir: &Path, roots: &Path) -> io::Result<Peer> {
    fs::create_dir(dir)?;
    let (port, authority) = (free_port()?, Authority::new()?);
    let (key, certificates) = (dir.join("authority.pem"), dir.join("certificates"));
    fs::write(&key, authority.pem_with_key())?;
    let size = ["-M", "4MB"];
    done(Command::new(SQUID_CERTIFICATES).args(["-c", "-s"]).arg(&certificates).args(size))?;
    let config = format!(
        "http_port 127.0.0.1:{port} ssl-bump generate-host-certificates=on tls-cert={}\n\
         sslcrtd_program {SQUID_CERTIFICATES} -s {} -M 4MB\n\
         tls_outgoing_options cafile={}\n\
         acl begin at_step SslBump1\nssl_bump peek begin\nssl_bump bump all\n\
         http_access allow all\ncache deny all\naccess_log none\ncache_log {}\n\
         pid_filename none\nnetdb_filename none\npinger_enable off\ncoredump_dir {}\n\
         visible_hostname localhost\nshutdown_lifetime 0 seconds\n",
        key.display(),
        certificates.display(),
        roots.display(),
        dir.join("log").display(),
        dir.display(),
    );
    let config_file = dir.join("squid.conf");
    fs::write(&config_file, config)?;
    if rustix::process::geteuid().is_root() {
        // It gives up being root, and is this user then.
        done(Command::new("chown").args(["-R", "proxy:proxy"]).arg(dir))?;
    }
    // One of its own, so that a squid that serves this machine is left alone.
    let service = format!("bench{}", std::process::id());
    let [alone, file, name] = ["-N", "-f", "-n"].map(OsStr::new);
    let args = [alone, name, OsStr::new(&service), file, config_file.as_os_str()];
    let mut peer = Peer::start(program, &args, port, authority.pem().to_owned())?;
    peer.shared = Some(format!("{service}-"));
    Ok(peer)
}

/// mitmproxy without its screen.
///
/// # Errors
/// Why it is not measured.
pub(crate) async fn mitmproxy(
    asked: Option<PathBuf>,
    dir: &Path,
    roots: &Path,
) -> Result<Peer, String> {
    let program = program(asked, "mitmdump")
        .ok_or("mitmproxy is not installed (pip install mitmproxy; --mitmdump PATH)")?;
    let failed = |error| format!("mitmproxy does not start: {error}");
    let dir = dir.join("mitmproxy");
    let started = start_mitmproxy(&program, &dir, roots).map_err(failed)?;
    let mut peer = started.ready().await.map_err(failed)?;
    // It makes one before it listens.
    let authority = fs::read_to_string(dir.join("mitmproxy-ca-cert.pem"));
    peer.authority = authority.map_err(failed)?;
    Ok(peer)
}

fn start_mitmproxy(program: &Path, dir: &Path, roots: &Path) -> io::Result<Peer> {
    let port = free_port()?;
    let settings = [
        format!("confdir={}", dir.display()),
        format!("ssl_verify_upstream_trusted_ca={}", roots.display()),
        // Or it would keep the whole body before it passed on any of it.
        "stream_large_bodies=1m".to_owned(),
    ];
    let number = port.to_string();
    let mut args = vec!["--quiet", "--listen-host", "127.0.0.1", "--listen-port", &number];
    args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let args: Vec<&OsStr> = args.into_iter().map(OsStr::new).collect();
    Peer::start(program, &args, port, String::new())
}

/// Does what has to be done before.
fn done(command: &mut Command) -> io::Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = status.status()?;
    let failed = || io::Error::other(format!("{}: {status}", command.get_program().display()));
    status.success().then_some(()).ok_or_else(failed)
}

impl Peer {
    fn start(program: &Path, args: &[&OsStr], port: u16, authority: String) -> io::Result<Self> {
        let child = Command::new(program)
            .args(args)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // It has children of its own, which are to end with it.
            .process_group(0)
            .spawn()?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        Ok(Self { child, address, authority, shared: None })
    }

    /// Waits until it accepts connections.
    async fn ready(mut self) -> io::Result<Self> {
        let end = Instant::now() + Duration::from_millis(limits::START_MS_MAX);
        while tokio::net::TcpStream::connect(self.address).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("it ended, {status}")));
            }
            if Instant::now() > end {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // poll: nothing else says that somebody else's program listens
            tokio::time::sleep(Duration::from_millis(limits::START_PAUSE_MS)).await;
        }
        Ok(self)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        let Some(shared) = &self.shared else { return };
        for file in fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten() {
            if file.file_name().to_string_lossy().starts_with(shared) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}
