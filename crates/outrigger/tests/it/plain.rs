//! What most tests ask of a server, without a program of its own for each request: to load curl
//! takes longer than to be answered.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Status and body of a request that has these arguments for curl; `None` if they are others than
/// the four that are known here. The status is 0 where none came, as curl has it.
pub(crate) fn ask(url: &str, args: &[&str], path: &str) -> Option<(u16, String)> {
    let host = url.strip_prefix("http://")?;
    let (mut method, mut body, mut headers) = (None, "", String::new());
    let (pairs, []) = args.as_chunks() else { return None };
    for pair in pairs {
        match pair {
            ["--cookie", jar] => headers.push_str(&format!("Cookie: {}\r\n", cookies(jar)?)),
            ["--oauth2-bearer", key] => {
                headers.push_str(&format!("Authorization: Bearer {key}\r\n"));
            }
            ["--json", text] if !text.starts_with('@') => {
                (method, body) = (method.or(Some("POST")), text);
                headers.push_str(&format!(
                    "Content-Type: application/json\r\nContent-Length: {}\r\n",
                    text.len()
                ));
            }
            ["--request", name] => method = Some(name),
            _ => return None,
        }
    }
    let method = method.unwrap_or("GET");
    // The older version has neither chunks nor a connection that stays.
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n{headers}\r\n{body}");
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut heard = Vec::new();
    let sent = stream.write_all(request.as_bytes());
    if sent.and_then(|()| stream.read_to_end(&mut heard)).is_err() || heard.is_empty() {
        return Some((0, String::new()));
    }
    let heard = String::from_utf8_lossy(&heard);
    let (head, body) = heard.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{heard:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some((status, body.to_owned()))
}

/// The cookies that curl keeps in a file, or that are given to it as they are.
fn cookies(jar: &str) -> Option<String> {
    if jar.contains('=') {
        return Some(jar.to_owned());
    }
    let kept = fs::read_to_string(jar).ok()?;
    let cookies = kept.lines().filter_map(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        (fields.len() == 7).then(|| format!("{}={}", fields[5], fields[6]))
    });
    Some(cookies.collect::<Vec<_>>().join("; "))
}
