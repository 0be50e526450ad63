//! Where this machine's own pip, uv, npm, cargo, Go and apt get packages, if not from where
//! everybody does.
//!
//! Owns that no password goes along: an address with one is passed over, and said.

use outrigger_gate::{Grant, Scheme};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::limits;

/// What grants of theirs are called.
const MIRRORS: &str = "mirrors";

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mirrors {
    /// What must be reachable. Their names may lead to private addresses.
    pub(super) grants: Vec<Grant>,
    /// What programs are told by variables.
    pub(super) env: BTreeMap<String, String>,
    /// What they are told by files, by their paths in the home directory.
    pub(super) files: BTreeMap<String, String>,
    /// Each for a person: whose, and where.
    pub(crate) found: Vec<(&'static str, String)>,
    /// Whose addresses have a password in them.
    pub(crate) withheld: Vec<&'static str>,
}

impl Mirrors {
    /// Where apt is told its sources.
    pub(super) const APT_SOURCES: &str = ".outrigger/apt/sources.sources";

    /// What the settings of this machine and its user say. `root`: where `/etc` is.
    pub(crate) fn find(root: &Path, home: &Path, vars: &BTreeMap<String, String>) -> Self {
        let mut mirrors = Self::default();
        mirrors.pip(root, home, vars);
        mirrors.uv(home, vars);
        mirrors.npm(root, home, vars);
        mirrors.cargo(home, vars);
        mirrors.go(home, vars);
        mirrors.apt(root);
        mirrors
    }

    /// Whether apt is told its sources.
    pub(super) fn has_apt(&self) -> bool {
        self.files.contains_key(Self::APT_SOURCES)
    }

    fn pip(&mut self, root: &Path, home: &Path, vars: &BTreeMap<String, String>) {
        let files = [
            root.join("etc/pip.conf"),
            home.join(".pip/pip.conf"),
            home.join(".config/pip/pip.conf"),
        ];
        let own = vars.get("PIP_CONFIG_FILE").map(PathBuf::from);
        let mut said = BTreeMap::new();
        for file in files.into_iter().chain(own) {
            said.extend(pairs(&read(&file)));
        }
        for (key, name) in
            [("index-url", "PIP_INDEX_URL"), ("extra-index-url", "PIP_EXTRA_INDEX_URL")]
        {
            if let Some(urls) = vars.get(name).or_else(|| said.get(key)) {
                self.told("pip", name, urls.split_whitespace(), " ");
            }
        }
    }

    fn uv(&mut self, home: &Path, vars: &BTreeMap<String, String>) {
        let settings = read(&home.join(".config/uv/uv.toml"));
        let settings: toml::Table = toml::from_str(&settings).unwrap_or_default();
        let mut usual = settings.get("index-url").and_then(toml::Value::as_str);
        let mut others = Vec::new();
        for index in settings.get("index").and_then(toml::Value::as_array).into_iter().flatten() {
            let Some(url) = index.get("url").and_then(toml::Value::as_str) else { continue };
            match index.get("default").and_then(toml::Value::as_bool) {
                Some(true) => usual = Some(url),
                Some(false) | None => others.push(url),
            }
        }
        let var = |names: [&str; 2]| names.iter().find_map(|name| vars.get(*name));
        let said = var(["UV_DEFAULT_INDEX", "UV_INDEX_URL"]).map(String::as_str);
        if let Some(url) = said.or(usual) {
            self.told("uv", "UV_DEFAULT_INDEX", std::iter::once(url), " ");
        }
        if let Some(said) = var(["UV_INDEX", "UV_EXTRA_INDEX_URL"]) {
            others.extend(said.split_whitespace());
        }
        // One may have a name before its address.
        let named = |url: &str| {
            url.split_once("=http").map_or(url.to_owned(), |(_, it)| format!("http{it}"))
        };
        let others: Vec<String> = others.into_iter().map(named).collect();
        if !others.is_empty() {
            self.told("uv", "UV_INDEX", others.iter().map(String::as_str), " ");
        }
    }

    fn npm(&mut self, root: &Path, home: &Path, vars: &BTreeMap<String, String>) {
        let mut said = pairs(&read(&root.join("etc/npmrc")));
        said.extend(pairs(&read(&home.join(".npmrc"))));
        let var = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];
        let var = var.iter().find_map(|name| vars.get(*name));
        if let Some(url) = var.or_else(|| said.get("registry")) {
            self.told("npm", "NPM_CONFIG_REGISTRY", std::iter::once(url.as_str()), " ");
        }
        let mut scopes = String::new();
        for (key, url) in said.iter().filter(|(key, _)| key.ends_with(":registry")) {
            if self.grant("npm", url) {
                scopes += &format!("{key}={url}\n");
            }
        }
        if !scopes.is_empty() {
            self.files.insert(".npmrc".to_owned(), scopes);
        }
    }

    fn cargo(&mut self, home: &Path, vars: &BTreeMap<String, String>) {
        let own = vars.get("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from);
        let text = ["config.toml", "config"].iter().map(|name| read(&own.join(name)));
        let text = text.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let Ok(settings) = toml::from_str::<toml::Table>(&text) else { return };
        let mut kept = toml::Table::new();
        for (table, key) in [("source", "registry"), ("registries", "index")] {
            let Some(all) = settings.get(table).and_then(toml::Value::as_table) else { continue };
            let mut some = toml::Table::new();
            for (name, one) in all {
                let url = one.get(key).and_then(toml::Value::as_str);
                let reached = url.is_none_or(|url| {
                    self.grant("cargo", url.strip_prefix("sparse+").unwrap_or(url))
                });
                let only = [key, "replace-with"];
                let values =
                    only.iter().filter_map(|key| Some(((*key).to_owned(), one.get(*key)?.clone())));
                let values: toml::Table = values.collect();
                if reached && !values.is_empty() {
                    some.insert(name.clone(), values.into());
                }
            }
            if !some.is_empty() {
                kept.insert(table.to_owned(), some.into());
            }
        }
        if !kept.is_empty() {
            self.files.insert(".cargo/config.toml".to_owned(), kept.to_string());
        }
    }

    fn go(&mut self, home: &Path, vars: &BTreeMap<String, String>) {
        let said = pairs(&read(&home.join(".config/go/env")));
        let Some(list) = vars.get("GOPROXY").or_else(|| said.get("GOPROXY")) else { return };
        // What is there besides, `direct` and `off`, is no address.
        let urls = list.split([',', '|']).filter(|it| it.starts_with("http"));
        self.told("go", "GOPROXY", urls, ",");
        for name in ["GONOSUMDB", "GOSUMDB", "GONOSUMCHECK", "GOFLAGS", "GOPRIVATE"] {
            if let Some(value) = vars.get(name).or_else(|| said.get(name)) {
                self.env.insert(name.to_owned(), value.clone());
            }
        }
    }

    /// All sources, because a sandbox may not see those of the machine.
    fn apt(&mut self, root: &Path) {
        let folder = root.join("etc/apt/sources.list.d");
        let listed = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
        files.push(root.join("etc/apt/sources.list"));
        files.sort();
        let mut sources = String::new();
        for file in files.iter().take(limits::APT_FILES_MAX) {
            let text = read(file);
            let paragraphs: Vec<String> = match file.extension().and_then(|it| it.to_str()) {
                Some("sources") => text.split("\n\n").map(str::to_owned).collect(),
                Some("list") => text.lines().filter_map(paragraph_of).collect(),
                Some(_) | None => continue,
            };
            for paragraph in paragraphs {
                let urls = paragraph.lines().filter_map(|line| line.strip_prefix("URIs:"));
                let urls: Vec<&str> = urls.flat_map(str::split_whitespace).collect();
                let reached = urls.iter().filter(|url| self.grant("apt", url)).count();
                if reached == urls.len() && reached > 0 {
                    sources += paragraph.trim();
                    sources += "\n\n";
                }
            }
        }
        if !sources.is_empty() {
            self.files.insert(Self::APT_SOURCES.to_owned(), sources);
        }
    }

    /// Tells programs of addresses by a variable, those without a password.
    fn told<'a>(
        &mut self,
        whose: &'static str,
        name: &str,
        urls: impl Iterator<Item = &'a str>,
        between: &str,
    ) {
        let reached: Vec<&str> = urls.filter(|url| self.grant(whose, url)).collect();
        if !reached.is_empty() {
            self.env.insert(name.to_owned(), reached.join(between));
        }
    }

    /// Grants reading beneath an address. False if it is none, or has a password in it.
    fn grant(&mut self, whose: &'static str, url: &str) -> bool {
        let Some((scheme, rest)) = url.split_once("://") else { return false };
        let (scheme, usual) = match scheme {
            "https" => (Scheme::Https, 443),
            "http" => (Scheme::Http, 80),
            _ => return false,
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') || path.contains('?') {
            self.withheld.push(whose);
            return false;
        }
        let port =
            authority.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = port.unwrap_or((authority, usual));
        let public = outrigger_gate::ready::packages();
        let host = host.to_ascii_lowercase();
        if public.iter().any(|it| it.host == host && it.port == port) {
            return true;
        }
        let path = path.trim_end_matches('/');
        self.found.push((whose, url.to_owned()));
        self.grants.push(Grant {
            name: MIRRORS.to_owned(),
            host,
            port,
            scheme,
            methods: vec!["GET".to_owned(), "HEAD".to_owned()],
            // A registry names files where it likes: beneath its host.
            paths: if path.is_empty() { Vec::new() } else { vec!["/*".to_owned()] },
            queries: Vec::new(),
            private: true,
        });
        true
    }
}

/// A source of the older form as one of the newer, see sources.list(5).
fn paragraph_of(line: &str) -> Option<String> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (url, suite) = (words.next()?, words.next()?);
    let components: Vec<&str> = words.collect();
    let mut paragraph = format!("Types: deb\nURIs: {url}\nSuites: {suite}\n");
    if !components.is_empty() {
        paragraph += &format!("Components: {}\n", components.join(" "));
    }
    for (name, value) in options.split_whitespace().filter_map(|it| it.split_once('=')) {
        let field = match name {
            "signed-by" => "Signed-By",
            "arch" => "Architectures",
            "trusted" => "Trusted",
            _ => continue,
        };
        paragraph += &format!("{field}: {}\n", value.replace(',', " "));
    }
    Some(paragraph)
}

/// A small file; nothing where there is none.
fn read(path: &Path) -> String {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path).map(|file| file.take(limits::SETTINGS_BYTES_MAX));
    let read = file.and_then(|mut file| file.read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}

/// `key = value`, whatever section it is in; the last of a key stands. A line that is indented
/// goes on with the one before.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    let mut last = None::<String>;
    for line in text.lines() {
        let begins = !line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        match (line.split_once('='), &last) {
            (Some((key, value)), _) if begins => {
                last = Some(key.trim().to_owned());
                pairs.insert(key.trim().to_owned(), value.trim().trim_matches('"').to_owned());
            }
            (_, Some(key)) if !begins => {
                let value: &mut String = pairs.entry(key.clone()).or_default();
                value.push(' ');
                value.push_str(line);
            }
            _ => {}
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fs;

    #[test]
    fn the_person_s_own_registries_are_found_and_their_passwords_are_not() {
        let (root, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |dir: &Path, path: &str, text: &str| {
            fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
            fs::write(dir.join(path), text).unwrap();
        };
        write(
            root.path(),
            "etc/pip.conf",
            "[global]\nindex-url = https://pip.example/simple/\nextra-index-url =\n    https://u:p@more.example/\n    http://more.example:8080/x\n",
        );
        write(
            home.path(),
            ".npmrc",
            "registry=https://npm.example/\n@team:registry=https://team.example/npm/\n//team.example/npm/:_authToken=secret\n",
        );
        write(
            home.path(),
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"own\"\n[source.own]\nregistry = \"sparse+https://cargo.example/index/\"\n[registries.priv]\nindex = \"https://tok@priv.example/\"\ntoken = \"secret\"\n[build]\nrustflags = []\n",
        );
        write(
            root.path(),
            "etc/apt/sources.list",
            "# comment\ndeb [signed-by=/usr/share/k.gpg arch=amd64] https://apt.example/debian stable main extra\ndeb-src https://apt.example/debian stable main\n",
        );
        let vars = [
            ("GOPROXY", "https://go.example,direct"),
            ("UV_INDEX", "corp=https://uv.example/simple"),
        ];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let found = Mirrors::find(root.path(), home.path(), &vars);
        let mut shown = String::new();
        found.found.iter().for_each(|(whose, url)| shown += &format!("{whose} {url}\n"));
        found.env.iter().for_each(|(name, value)| shown += &format!("{name}={value}\n"));
        found.files.iter().for_each(|(path, text)| shown += &format!("--- {path}\n{text}"));
        shown += &format!("withheld: {:?}\n", found.withheld);
        expect![[r#"
            pip https://pip.example/simple/
            pip http://more.example:8080/x
            uv https://uv.example/simple
            npm https://npm.example/
            npm https://team.example/npm/
            cargo https://cargo.example/index/
            go https://go.example
            apt https://apt.example/debian
            GOPROXY=https://go.example
            NPM_CONFIG_REGISTRY=https://npm.example/
            PIP_EXTRA_INDEX_URL=http://more.example:8080/x
            PIP_INDEX_URL=https://pip.example/simple/
            UV_INDEX=https://uv.example/simple
            --- .cargo/config.toml
            [source.crates-io]
            replace-with = "own"

            [source.own]
            registry = "sparse+https://cargo.example/index/"
            --- .npmrc
            @team:registry=https://team.example/npm/
            --- .outrigger/apt/sources.sources
            Types: deb
            URIs: https://apt.example/debian
            Suites: stable
            Components: main extra
            Signed-By: /usr/share/k.gpg
            Architectures: amd64

            withheld: ["pip", "cargo"]
        "#]]
        .assert_eq(&shown);
        assert!(!format!("{found:?}").contains("secret"));
    }
}
