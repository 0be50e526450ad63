//! The gate that is measured, in a process of its own, as the product starts it.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use outrigger_gate::{Grant, Network, NetworkClient, Scheme, ServerLaunch};
use rustix::process::{Pid, Signal};

use crate::host;
use crate::route::Route;

/// What makes this program the gate: the file for its id, and its directory, follow.
pub(crate) const MODE: &str = "gate-server";

/// A gate whose process ends with the measurement.
pub(crate) struct Gate {
    client: NetworkClient,
    pid_file: PathBuf,
}

/// Becomes the gate.
pub(crate) fn serve(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let (Some(pid_file), Some(dir)) = (args.next(), args.next()) else {
        return Err(io::Error::other("a file and a directory are missing"));
    };
    std::fs::write(pid_file, std::process::id().to_string())?;
    outrigger_gate::serve(Path::new(&dir)).map_err(io::Error::other)
}

impl Gate {
    /// A gate that trusts the authorities of a file, and no others. It starts with the
    /// first sandbox.
    pub(crate) fn new(dir: &Path, roots: &Path) -> io::Result<Self> {
        let pid_file = dir.join("gate.pid");
        let mut trusts = OsString::from("SSL_CERT_FILE=");
        trusts.push(roots);
        let args: [OsString; 6] = [
            "-u".into(),
            "SSL_CERT_DIR".into(),
            trusts,
            std::env::current_exe()?.into(),
            MODE.into(),
            pid_file.clone().into(),
        ];
        let launch = ServerLaunch {
            program: "/usr/bin/env".into(),
            args: args.into(),
            master_key_command: Vec::new(),
        };
        Ok(Self { client: NetworkClient::new(dir.join("gate"), launch), pid_file })
    }

    /// Opens a sandbox, and says how the host is reached from inside.
    pub(crate) async fn open(&self, sandbox: &str, host: SocketAddr) -> io::Result<Route> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let inside = listener.local_addr()?;
        let grant = Grant {
            name: "bench".to_owned(),
            host: host::NAME.to_owned(),
            port: host.port(),
            scheme: Scheme::Https,
            methods: Vec::new(),
            paths: Vec::new(),
            queries: Vec::new(),
            private: true,
        };
        let network = Network { grants: vec![grant], ..Network::default() };
        let opened = self.client.open(sandbox, &network, &[], Some(OwnedFd::from(listener))).await;
        let trusted = opened.map_err(io::Error::other)?;
        Route::new(host, Some(inside), &trusted.authority)
    }

    /// Memory that its process has resident.
    pub(crate) fn resident_mib(&self) -> io::Result<f64> {
        let pid = self.pid()?.as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        let kib = kib.ok_or_else(|| io::Error::other("no VmRSS of the gate"))?;
        Ok(kib / 1024.0)
    }

    fn pid(&self) -> io::Result<Pid> {
        let pid = std::fs::read_to_string(&self.pid_file)?;
        let pid = pid.parse().ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("no id of the gate's process"))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Ok(pid) = self.pid() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}
