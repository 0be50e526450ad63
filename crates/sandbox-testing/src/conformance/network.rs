//! The way out: what programs connect to arrives outside, whole and apart.

use outrigger_sandbox::{ConnectionSink, Networks, capture};
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{Mutex, mpsc};

use super::case::cases;
use super::context::{Context, Outcome, ensure, same, soon, text};
use crate::limits::NETWORK_BYTES;

cases! { "network":
    what_connects_arrives [Network, Programs],
    bytes_are_whole_in_both_directions [Network, Programs],
    it_goes_on_while_another_is_not_read [Network, Programs],
    asked_again_it_is_the_same [Network, Programs],
    it_is_of_one_sandbox [Network, Programs],
    names_of_hosts_lead_there_too [Network, Programs],
    more_ports_are_captured_as_they_are_named [Network, Programs],
    names_that_are_nobodys_lead_nowhere [Network, Programs],
    names_lead_nowhere_without_a_way_out [Network, Programs],
    own_servers_have_their_ports [Network, Programs],
}

/// A connection, whichever way it came.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Keeps connections until somebody asks.
#[derive(Debug)]
struct Carried(mpsc::UnboundedSender<(OwnedFd, Option<u16>)>);

impl ConnectionSink for Carried {
    fn connection(&self, connection: OwnedFd, captured: Option<u16>) {
        // A case that is over takes none.
        let _ = self.0.send((connection, captured));
    }
}

/// The outer end of a sandbox's listeners.
struct Outside {
    port: u16,
    listeners: Vec<TcpListener>,
    carried: Mutex<mpsc::UnboundedReceiver<(OwnedFd, Option<u16>)>>,
}

impl Outside {
    async fn accept(&self) -> Result<Box<dyn Stream>, String> {
        Ok(self.accept_captured().await?.0)
    }

    /// A connection, and the port to which a name led it.
    async fn accept_captured(&self) -> Result<(Box<dyn Stream>, Option<u16>), String> {
        let failed = |error: std::io::Error| format!("accept: {error}");
        if !self.listeners.is_empty() {
            let accept = poll_fn(|context| {
                let mut accepted = self.listeners.iter().map(|it| it.poll_accept(context));
                accepted.find(Poll::is_ready).unwrap_or(Poll::Pending)
            });
            let (stream, _) = soon("a connection", accept).await?.map_err(failed)?;
            let at = stream.local_addr().map_err(failed)?;
            let captured = (at.ip() == capture::ADDRESS).then_some(at.port());
            return Ok((Box::new(stream), captured));
        }
        let carried =
            soon("a connection", async { self.carried.lock().await.recv().await }).await?;
        let (stream, captured) = carried.ok_or("nothing is carried")?;
        let stream = std::os::unix::net::UnixStream::from(stream);
        stream.set_nonblocking(true).map_err(failed)?;
        Ok((Box::new(UnixStream::from_std(stream).map_err(failed)?), captured))
    }
}

impl Context {
    fn networks(&self) -> Result<&Arc<dyn Networks>, String> {
        self.networks.as_ref().ok_or_else(|| "it gives no networks".to_owned())
    }

    async fn outside(&self) -> Result<Outside, String> {
        self.outside_at(&[]).await
    }

    async fn outside_at(&self, ports: &[u16]) -> Result<Outside, String> {
        let (sender, carried) = mpsc::unbounded_channel();
        let sink = Arc::new(Carried(sender));
        let listener = self.networks()?.listen(self.sandbox.id(), ports, sink).await;
        let listener = listener.map_err(|error| format!("listen: {error}"))?;
        let listeners = listener.descriptors.into_iter().map(|descriptor| {
            let socket = std::net::TcpListener::from(descriptor);
            socket.set_nonblocking(true).and_then(|()| TcpListener::from_std(socket))
        });
        let listeners = listeners.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        Ok(Outside { port: listener.port, listeners, carried: Mutex::new(carried) })
    }
}

/// A line that connects, as descriptor 3.
fn connect(port: u16) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/{port}")
}

async fn what_connects_arrives(context: Context) -> Outcome {
    let outside = context.outside().await?;
    let line =
        format!("{}; echo from inside >&3; read -r line <&3; echo $line", connect(outside.port));
    let serve = async {
        let mut stream = outside.accept().await?;
        let mut got = [0; 12];
        soon("a line", stream.read_exact(&mut got)).await?.map_err(|error| error.to_string())?;
        stream.write_all(b"from outside\n").await.map_err(|error| error.to_string())?;
        same("a line", text(&got), "from inside\n".to_owned())
    };
    let (served, printed) = tokio::join!(serve, context.prints("a", &line, "from outside\n"));
    served.and(printed)
}

async fn bytes_are_whole_in_both_directions(context: Context) -> Outcome {
    let outside = context.outside().await?;
    let there: Vec<u8> = (0..NETWORK_BYTES).map(|at| (at % 251) as u8).collect();
    let bytes = there.len();
    let line =
        format!("{}; head -c {bytes} <&3 > got && cat got >&3; wc -c < got", connect(outside.port));
    let serve = async {
        let stream = outside.accept().await?;
        let (mut reads, mut writes) = tokio::io::split(stream);
        let mut back = Vec::new();
        let give = async {
            let given = writes.write_all(&there).await;
            given.map_err(|error| error.to_string())
        };
        let take = async {
            let taken = soon("the bytes", reads.read_to_end(&mut back)).await?;
            taken.map_err(|error| error.to_string())
        };
        let (given, taken) = tokio::join!(give, take);
        given.and(taken)?;
        ensure("the bytes that came back are others", back == there)
    };
    let expected = format!("{bytes}\n");
    let (served, printed) = tokio::join!(serve, context.prints("a", &line, &expected));
    served.and(printed)
}

async fn it_goes_on_while_another_is_not_read(context: Context) -> Outcome {
    let outside = context.outside().await?;
    let port = outside.port;
    let stuck = format!("{}; head -c {NETWORK_BYTES} /dev/zero >&3", connect(port));
    let line = format!(
        "({stuck}) & {}; echo fine >&3; read -r line <&3; echo $line; kill $! 2>/dev/null; true",
        connect(port)
    );
    let serve = async {
        let mut unread = Vec::new();
        // Which of the two is first is left open.
        loop {
            let mut stream = outside.accept().await?;
            let mut first = [0];
            soon("a byte", stream.read_exact(&mut first))
                .await?
                .map_err(|error| error.to_string())?;
            if first != [0] {
                stream.write_all(b"answered\n").await.map_err(|error| error.to_string())?;
                return Ok(unread);
            }
            unread.push(stream);
        }
    };
    let done = context.shell("a", &line);
    let (served, done): (Result<Vec<Box<dyn Stream>>, String>, _) = tokio::join!(serve, done);
    served?;
    same(&line, text(&done?.stdout), "answered\n".to_owned())
}

async fn asked_again_it_is_the_same(context: Context) -> Outcome {
    let (first, second) = (context.outside().await?, context.outside().await?);
    same("the port", second.port, first.port)
}

async fn it_is_of_one_sandbox(context: Context) -> Outcome {
    let outside = context.outside().await?;
    let other = context.sibling("other").await?;
    let done = other.shell("a", &connect(outside.port)).await?;
    ensure("another sandbox reaches it", done.exit_code() != Some(0))?;
    other.end().await
}

async fn names_of_hosts_lead_there_too(context: Context) -> Outcome {
    let outside = context.outside().await?;
    for (number, port) in capture::PORTS.into_iter().enumerate() {
        let line = format!(
            "exec 3<>/dev/tcp/www.example.com/{port}; echo by name >&3; read -r line <&3; echo $line"
        );
        let serve = async {
            let mut stream = outside.accept().await?;
            let mut got = [0; 8];
            soon("a line", stream.read_exact(&mut got))
                .await?
                .map_err(|error| error.to_string())?;
            stream.write_all(b"reached\n").await.map_err(|error| error.to_string())?;
            same("a line", text(&got), "by name\n".to_owned())
        };
        let name = format!("by-name-{number}");
        let (served, printed) = tokio::join!(serve, context.prints(&name, &line, "reached\n"));
        served.and(printed)?;
    }
    Ok(())
}

async fn more_ports_are_captured_as_they_are_named(context: Context) -> Outcome {
    let first = context.outside().await?.port;
    for (number, ports) in [vec![22, 5432], vec![5432]].into_iter().enumerate() {
        let outside = context.outside_at(&ports).await?;
        same("the port of the proxy", outside.port, first)?;
        for port in &ports {
            // Whoever is outside speaks first.
            let line =
                format!("exec 3<>/dev/tcp/db.example.com/{port}; read -r line <&3; echo $line");
            let serve = async {
                let (mut stream, captured) = outside.accept_captured().await?;
                same("where it came", captured, Some(*port))?;
                stream.write_all(b"SSH-2.0-x\n").await.map_err(|error| error.to_string())
            };
            let name = format!("captured-{number}-{port}");
            let (served, printed) =
                tokio::join!(serve, context.prints(&name, &line, "SSH-2.0-x\n"));
            served.and(printed)?;
        }
    }
    let rest = "(exec 3<>/dev/tcp/db.example.com/22) 2>/dev/null || echo gone; \
                busybox httpd -p 127.0.0.1:5432 && echo own";
    context.prints("rest", rest, "gone\nown\n").await
}

async fn names_that_are_nobodys_lead_nowhere(context: Context) -> Outcome {
    let _outside = context.outside().await?;
    let line = "for name in example host.invalid host.local 1.0.0.127.in-addr.arpa; do \
                (exec 3<>/dev/tcp/$name/80) 2>/dev/null && echo $name; done; echo none";
    context.prints("a", line, "none\n").await
}

async fn names_lead_nowhere_without_a_way_out(context: Context) -> Outcome {
    let line = "(exec 3<>/dev/tcp/www.example.com/443) 2>/dev/null || echo nowhere";
    context.prints("a", line, "nowhere\n").await
}

async fn own_servers_have_their_ports(context: Context) -> Outcome {
    let _outside = context.outside().await?;
    let line = "for port in 80 443; do busybox httpd -p 127.0.0.1:$port || exit; \
                exec 3<>/dev/tcp/127.0.0.1/$port || exit; done; echo both";
    context.prints("a", line, "both\n").await
}
