//! What programs in a sandbox are told of its network: variables and a few files, so that they
//! use it as they would at home, without a setting of anybody's.

use outrigger_sandbox::{ExecId, FileOp, Precondition, WriteMode};
use std::collections::BTreeMap;

use super::mirrors::Mirrors;

/// Where the files are.
const HOME: &str = "/home/agent";
const FOLDER: &str = "/home/agent/.outrigger";

/// Variables that name a file of certificates.
const CERTIFICATES: [&str; 11] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
];

/// Variables that name a proxy.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/// What is at once so that a sandbox's own servers are reached without the proxy.
const OWN: &str = "localhost,127.0.0.1,::1";

/// The variables of commands whose way out is this port of the sandbox.
pub(super) fn variables(port: u16, mirrors: Option<&Mirrors>) -> BTreeMap<String, String> {
    let proxy = format!("http://127.0.0.1:{port}");
    let certificates = format!("{FOLDER}/ca.pem");
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: &str, value: &str| drop(all.insert(name.to_owned(), value.to_owned()));
    PROXIES.iter().for_each(|name| set(name, &proxy));
    CERTIFICATES.iter().for_each(|name| set(name, &certificates));
    set("no_proxy", OWN);
    set("NO_PROXY", OWN);
    // Node reads the others from version 24 on if it is told to.
    set("NODE_USE_ENV_PROXY", "1");
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port}"
    );
    set("MAVEN_OPTS", &java);
    set("GRADLE_OPTS", &java);
    set("APT_CONFIG", &format!("{FOLDER}/apt.conf"));
    let Some(mirrors) = mirrors else { return all };
    // Instead of what a sandbox without packages is told, and of the caches of this machine,
    // which can't be written to.
    let set_all = [
        ("CARGO_HOME", format!("{HOME}/.cargo")),
        ("CARGO_NET_OFFLINE", "false".to_owned()),
        ("GOMODCACHE", format!("{HOME}/go/pkg/mod")),
        ("GOFLAGS", "-modcacherw".to_owned()),
        ("GOPROXY", String::new()),
        ("UV_OFFLINE", "0".to_owned()),
        ("MAVEN_ARGS", String::new()),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".to_owned()),
        ("NPM_CONFIG_UPDATE_NOTIFIER", "false".to_owned()),
    ];
    all.extend(set_all.map(|(name, value)| (name.to_owned(), value)));
    all.extend(mirrors.env.clone());
    all
}

/// The files that those speak of, as operations of that name. `authority`: the certificate
/// that everything comes with.
pub(super) fn files(name: &str, authority: &str, mirrors: Option<&Mirrors>) -> Vec<FileOp> {
    let mut files = vec![
        (format!("{FOLDER}/ca.pem"), authority.to_owned()),
        (format!("{FOLDER}/apt.conf"), apt(mirrors)),
    ];
    // Each is made for the folder that it is in.
    let folders = [
        "state/lists/partial",
        "cache/archives/partial",
        "etc/apt.conf.d",
        "etc/preferences.d",
        "etc/sources.list.d",
    ];
    files.extend(folders.map(|it| (format!("{FOLDER}/apt/{it}/.keep"), String::new())));
    let mirrors = mirrors.into_iter();
    for (path, contents) in mirrors.flat_map(|mirrors| &mirrors.files) {
        files.push((format!("{HOME}/{path}"), contents.clone()));
    }
    let files = files.into_iter().enumerate();
    let write = |(number, (path, contents)): (usize, (String, String))| FileOp::Write {
        id: ExecId::new(format!("{name}.{number}")).expect("the name is plain"),
        path,
        contents: contents.into_bytes(),
        mode: WriteMode::Replace,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    };
    files.map(write).collect()
}

/// Settings by which apt works for who may not write where it does by itself.
fn apt(mirrors: Option<&Mirrors>) -> String {
    let mut settings = format!(
        "Dir::State \"{FOLDER}/apt/state\";\nDir::State::status \"/var/lib/dpkg/status\";\nDir::Cache \"{FOLDER}/apt/cache\";\nAcquire::https::CAInfo \"{FOLDER}/ca.pem\";\nAPT::Sandbox::User \"\";\n"
    );
    if mirrors.is_some_and(|mirrors| mirrors.has_apt()) {
        settings += &format!(
            "Dir::Etc \"{FOLDER}/apt/etc\";\nDir::Etc::SourceList \"{HOME}/{}\";\n",
            Mirrors::APT_SOURCES
        );
    }
    settings
}
