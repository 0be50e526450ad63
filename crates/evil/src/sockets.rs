//! Sockets of every family, and what can be reached with the ordinary ones.
//!
//! Owns the table of families. Sends nothing that another host would have to answer.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddr, UnixStream};
use std::time::Duration;

use crate::report::Report;
use crate::sys::{call, outcome, outcome_of};

/// Family, kind and protocol; numbers are those of linux/socket.h and linux/in.h.
const SOCKETS: &[(&str, i32, i32, i32)] = &[
    ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM, 0),
    ("packet", libc::AF_PACKET, libc::SOCK_RAW, 0x0300),
    ("packet-datagram", libc::AF_PACKET, libc::SOCK_DGRAM, 0x0300),
    ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
    ("netlink-usersock", libc::AF_NETLINK, libc::SOCK_RAW, 2),
    ("netlink-sock-diag", libc::AF_NETLINK, libc::SOCK_RAW, 4),
    ("netlink-xfrm", libc::AF_NETLINK, libc::SOCK_RAW, 6),
    ("netlink-audit", libc::AF_NETLINK, libc::SOCK_RAW, 9),
    ("netlink-netfilter", libc::AF_NETLINK, libc::SOCK_RAW, 12),
    ("netlink-uevent", libc::AF_NETLINK, libc::SOCK_RAW, 15),
    ("netlink-generic", libc::AF_NETLINK, libc::SOCK_RAW, 16),
    ("netlink-crypto", libc::AF_NETLINK, libc::SOCK_RAW, 21),
    ("raw-icmp", libc::AF_INET, libc::SOCK_RAW, 1),
    ("raw-any", libc::AF_INET, libc::SOCK_RAW, 255),
    ("raw-six", libc::AF_INET6, libc::SOCK_RAW, 58),
    ("sctp", libc::AF_INET, libc::SOCK_STREAM, 132),
    ("dccp", libc::AF_INET, 6, 33),
    ("l2tp", libc::AF_INET, libc::SOCK_DGRAM, 115),
    ("udplite", libc::AF_INET, libc::SOCK_DGRAM, 136),
    ("smc-inet", libc::AF_INET, libc::SOCK_STREAM, 256),
    ("ax25", 3, libc::SOCK_DGRAM, 0),
    ("ipx", 4, libc::SOCK_DGRAM, 0),
    ("appletalk", 5, libc::SOCK_DGRAM, 0),
    ("x25", 9, libc::SOCK_SEQPACKET, 0),
    ("key", 15, libc::SOCK_RAW, 2),
    ("rds", 21, libc::SOCK_SEQPACKET, 0),
    ("pppox", 24, libc::SOCK_STREAM, 0),
    ("llc", 26, libc::SOCK_DGRAM, 0),
    ("can", 29, libc::SOCK_RAW, 1),
    ("tipc", 30, libc::SOCK_SEQPACKET, 0),
    ("bluetooth", 31, libc::SOCK_RAW, 1),
    ("rxrpc", 33, libc::SOCK_DGRAM, 2),
    ("phonet", 35, libc::SOCK_DGRAM, 0),
    ("nfc", 39, libc::SOCK_SEQPACKET, 1),
    ("kcm", 41, libc::SOCK_DGRAM, 0),
    ("qipcrtr", 42, libc::SOCK_DGRAM, 0),
    ("smc", 43, libc::SOCK_STREAM, 0),
    ("xdp", 44, libc::SOCK_RAW, 0),
    ("mctp", 45, libc::SOCK_DGRAM, 0),
];

fn open(family: i32, kind: i32, protocol: i32) -> Result<usize, i32> {
    call(libc::SYS_socket, &[family as usize, kind as usize, protocol as usize])
}

/// Attempts to have a socket at all.
pub(crate) fn sockets(report: &Report) {
    for (name, family, kind, protocol) in SOCKETS {
        report.attempt(&format!("socket/{name}"), || outcome(open(*family, *kind, *protocol)));
    }
    report.attempt("socket/pair-vsock", || {
        let mut pair = [0_i32; 2];
        let args = [libc::AF_VSOCK as usize, 1, 0, pair.as_mut_ptr() as usize];
        outcome(call(libc::SYS_socketpair, &args))
    });
    // SIOCSIFFLAGS with a name and no flags would take the loopback down; SIOCSIFADDR
    // would give it an address, SIOCBRADDBR a bridge beside it.
    for (name, request) in [("down", 0x8914_usize), ("address", 0x8916), ("bridge", 0x89a0)] {
        report.attempt(&format!("socket/interface-{name}"), || {
            let mut interface = [0_u8; 40];
            interface[..2].copy_from_slice(b"lo");
            interface[16] = 2;
            let socket = match open(libc::AF_INET, libc::SOCK_DGRAM, 0) {
                Ok(socket) => socket,
                Err(error) => return outcome(Err(error)),
            };
            outcome(call(libc::SYS_ioctl, &[socket, request, interface.as_ptr() as usize]))
        });
    }
    // IPT_SO_SET_REPLACE and SO_BINDTODEVICE, SO_DEBUG and SO_RCVBUFFORCE of socket(7).
    let options = [
        ("iptables", libc::IPPROTO_IP, 64),
        ("debug", libc::SOL_SOCKET, libc::SO_DEBUG),
        ("buffer", libc::SOL_SOCKET, libc::SO_RCVBUFFORCE),
        ("mark", libc::SOL_SOCKET, libc::SO_MARK),
    ];
    for (name, level, option) in options {
        report.attempt(&format!("socket/option-{name}"), || {
            let one = [1_u32; 32];
            let socket = open(libc::AF_INET, libc::SOCK_DGRAM, 0).unwrap_or(usize::MAX);
            let at = one.as_ptr() as usize;
            outcome(call(
                libc::SYS_setsockopt,
                &[socket, level as usize, option as usize, at, size_of_val(&one)],
            ))
        });
    }
}

/// A question for the address of a name of one letter (RFC 1035), and whatever comes back.
fn datagram(address: &str) -> std::io::Result<usize> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    socket.send(b"ab\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01")?;
    socket.recv(&mut [0; 512])
}

/// Attempts to reach something.
pub(crate) fn network(report: &Report) {
    let addresses = [
        ("metadata", "169.254.169.254:80"),
        ("metadata-aliyun", "100.100.100.200:80"),
        ("internet", "93.184.216.34:443"),
        ("private", "10.0.0.1:22"),
        ("docker-host", "172.17.0.1:2375"),
        ("metadata-six", "[fd00:ec2::254]:80"),
        ("internet-six", "[2606:4700:4700::1111]:443"),
        ("link-local-six", "[fe80::1]:80"),
    ];
    for (name, address) in addresses {
        report.attempt(&format!("network/{name}"), || {
            let address: SocketAddr = address.parse().expect("the table holds addresses");
            outcome_of(TcpStream::connect_timeout(&address, Duration::from_secs(2)))
        });
    }
    // A resolver, an engine's own resolver, and what QUIC would use. Nothing may come back.
    for (name, address) in
        [("dns", "8.8.8.8:53"), ("dns-docker", "127.0.0.11:53"), ("quic", "93.184.216.34:443")]
    {
        report.attempt(&format!("network/datagram-{name}"), || outcome_of(datagram(address)));
    }
    report.attempt("network/interfaces", || {
        let table = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
        let names = table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim()));
        names.collect::<Vec<_>>().join(" ")
    });
    report.attempt("network/routes", || {
        let table = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
        table.lines().skip(1).count().to_string()
    });
    report.attempt("network/sockets-named", || {
        let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let names = table.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().nth(7));
        let names: Vec<&str> = names.collect();
        // The guest's own, where it listens inside, has no power beyond its sandbox.
        let foreign = names.iter().filter(|name| !name.contains("outrigger"));
        foreign.copied().collect::<Vec<_>>().join(" ")
    });
    for name in ["/tmp/.X11-unix/X0", "/org/freedesktop/systemd1/private", "/containerd-shim"] {
        report.attempt(&format!("network/abstract{name}"), || {
            let address = LocalAddr::from_abstract_name(name).expect("the names are short");
            outcome_of(UnixStream::connect_addr(&address))
        });
    }
}
