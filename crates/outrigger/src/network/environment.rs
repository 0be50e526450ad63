//! What programs in a sandbox are told of its network: variables and a few files, so that they
//! use it as they would at home, without a setting of anybody's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    // Not JAVA_TOOL_OPTIONS: each program would say on its standard error that it read it.
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port} -Djavax.net.ssl.trustStore={FOLDER}/ca.jks -Djavax.net.ssl.trustStoreType=JKS"
    );
    ["MAVEN_OPTS", "GRADLE_OPTS", "ANT_OPTS", "SBT_OPTS"].iter().for_each(|name| set(name, &java));
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
        (format!("{FOLDER}/ca.pem"), authority.as_bytes().to_vec()),
        (format!("{FOLDER}/ca.jks"), java_store(authority)),
        (format!("{FOLDER}/apt.conf"), apt(mirrors).into_bytes()),
    ];
    // Each is made for the folder that it is in.
    let folders = [
        "state/lists/partial",
        "cache/archives/partial",
        "etc/apt.conf.d",
        "etc/preferences.d",
        "etc/sources.list.d",
    ];
    files.extend(folders.map(|it| (format!("{FOLDER}/apt/{it}/.keep"), Vec::new())));
    let mirrors = mirrors.into_iter();
    for (path, contents) in mirrors.flat_map(|mirrors| &mirrors.files) {
        files.push((format!("{HOME}/{path}"), contents.clone().into_bytes()));
    }
    let files = files.into_iter().enumerate();
    let write = |(number, (path, contents)): (usize, (String, Vec<u8>))| FileOp::Write {
        id: ExecId::new(format!("{name}.{number}")).expect("the name is plain"),
        path,
        contents,
        mode: WriteMode::Replace,
        executable: None,
        modified_ns: None,
        precondition: Precondition::None,
    };
    files.map(write).collect()
}

/// The certificate as Java reads it: a JKS file, whose form is that of the JDK's
/// `sun.security.provider.JavaKeyStore`. Java checks the digest at its end where it is told of a
/// password, and it is told of none.
fn java_store(authority: &str) -> Vec<u8> {
    let body: String = authority.lines().filter(|line| !line.starts_with("-----")).collect();
    let certificate = STANDARD.decode(body).unwrap_or_default();
    let text = |text: &str| [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    let length = u32::try_from(certificate.len()).unwrap_or(0).to_be_bytes();
    let (magic, version, count) = (0xfeed_feed_u32, 2_u32, 1_u32);
    let trusted_certificate = 2_u32;
    [
        [magic, version, count, trusted_certificate].map(u32::to_be_bytes).concat(),
        text("outrigger"),
        // Of when it is does not matter.
        0_u64.to_be_bytes().to_vec(),
        text("X.509"),
        length.to_vec(),
        certificate,
        vec![0; 20],
    ]
    .concat()
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
