//! People who log in by a provider: who they are, who is let in, and what no provider, no browser
//! and no other person can make of it.

use crate::oidc_provider::{Fault, OidcProvider, SECRET};
use crate::serve::Served;
use crate::support::{World, until};
use crate::tmux::Tmux;
use serde_json::{Value, json};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// A server whose people have accounts at a provider.
struct Company {
    provider: OidcProvider,
    served: Served,
}

const USUAL: &str = "allow_groups = ['/people']\ngroups = { '/platform' = ['admin', 'platform'] }";
const PEOPLE: &str = "[groups]\nops = ['person:bob@example.com']\nadmin = ['person:lea']\n";

impl Company {
    fn new(more: &str) -> Self {
        Self::at(OidcProvider::new(true), more)
    }

    /// `more`: of the table `[oidc]`.
    fn at(provider: OidcProvider, more: &str) -> Self {
        let world = World::new();
        let people = world.path("people.toml");
        fs::write(&people, PEOPLE).unwrap();
        world.configure(&format!(
            "[policy]\npeople = {people:?}\n[oidc]\nissuer = '{}'\nclient_id = 'outrigger'\nname = 'Acme'\nscopes = ['email', 'groups']\n{more}\n",
            provider.url
        ));
        let dir = world.dir("repo", &[("file", b"one\n")]);
        let script = world.script(&[]);
        let variables: &'static [_] = &[("OIDC_SECRET", SECRET)];
        let served = Served::with(world, &dir, &script, variables);
        Self { provider, served }
    }

    fn jar(&self, name: &str) -> String {
        self.served.world.path(name).display().to_string()
    }

    /// A browser that begins at the button and goes where it is sent. Gives what it sees at last.
    fn sign_in(&self, jar: &str, next: &str) -> (u16, String) {
        let jar = self.jar(jar);
        let args = ["--location", "--cookie", &jar, "--cookie-jar", &jar];
        self.served.curl(&args, &format!("/login/oidc/begin?next={next}"))
    }

    fn get(&self, jar: &str, path: &str) -> (u16, Value) {
        let (status, body) = self.served.curl(&["--cookie", &self.jar(jar)], path);
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    /// Who a browser is logged in as.
    fn person(&self, jar: &str) -> Option<String> {
        let (status, server) = self.get(jar, "/v1/server");
        (status == 200).then(|| server["person"].as_str().unwrap().to_owned())
    }

    fn groups(&self, jar: &str) -> Value {
        let (_, people) = self.get(jar, "/v1/people");
        let you = people["you"].clone();
        let all = people["data"].as_array().unwrap();
        all.iter().find(|person| person["name"] == you).unwrap()["groups"].clone()
    }

    fn is_refused(&self, jar: &str, word: &str) {
        let (status, page) = self.sign_in(jar, "/");
        assert!(status == 401 && page.contains(word), "{word}: {status} {page}");
        assert_eq!(self.person(jar), None, "{word}");
    }
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn account(sub: &str, email: &str, groups: &[&str]) -> (Value, Value) {
    let claims = json!({ "sub": sub, "email": email, "email_verified": true });
    (claims, json!({ "sub": sub, "groups": groups }))
}

#[test]
fn a_person_signs_in_and_is_in_the_groups_that_the_provider_says() {
    let company = Company::new(&format!("client_secret_env = 'OIDC_SECRET'\n{USUAL}"));
    let (status, ways) = company.get("nobody", "/v1/login");
    assert_eq!((status, &ways["provider"]["name"]), (200, &json!("Acme")), "{ways}");
    let (status, page) = company.sign_in("ada", "/device%3Fcode%3DBCDF-GHJK");
    assert_eq!((status, page.contains("url=/device?code=BCDF-GHJK\"")), (200, true), "{page}");
    assert_eq!(company.person("ada").as_deref(), Some("person:ada@example.com"));
    assert_eq!(company.groups("ada"), json!(["admin", "platform"]));
    let (_, server) = company.get("ada", "/v1/server");
    assert_eq!(server["rights"]["administer"], true, "an admin by the provider: {server}");
    let jar = fs::read_to_string(company.jar("ada")).unwrap();
    let cookies = jar.lines().filter(|line| line.starts_with("#HttpOnly_"));
    let cookies: Vec<_> = cookies.map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!((cookies.len(), cookies[0][5]), (1, "outrigger"), "the login's own is gone: {jar}");
    let lives = cookies[0][4].parse::<u64>().unwrap() - now_seconds();
    assert!((11 * 3_600..=12 * 3_600).contains(&lives), "{lives} s");

    // Whose groups changed has the new ones from the next login on; rules see them at once.
    let (claims, userinfo) = account("1", "ada@example.com", &["/people"]);
    company.provider.set_person(claims, userinfo);
    assert_eq!(company.sign_in("laptop", "/").0, 200);
    assert_eq!((company.groups("laptop"), company.groups("ada")), (json!([]), json!([])));
    assert_eq!(company.get("ada", "/v1/server").1["rights"]["administer"], false);

    // A key that nobody knew comes into use.
    company.provider.rotate();
    assert_eq!(company.sign_in("laptop", "/").0, 200);

    let out = ["--cookie", &company.jar("ada"), "--request", "POST", "--json", "{}"];
    assert_eq!(company.served.curl(&out, "/v1/logout").0, 204);
    assert_eq!((company.person("ada"), company.person("laptop").is_some()), (None, true));
    let data = company.served.world.data();
    let found = std::process::Command::new("grep").args(["-rlF", SECRET]).arg(&data).output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "", "the secret is nowhere");
}

#[test]
fn what_a_provider_says_wrongly_logs_nobody_in() {
    let company = Company::new(&format!("client_secret_env = 'OIDC_SECRET'\n{USUAL}"));
    for (fault, word) in Fault::FATAL {
        company.provider.set_fault(fault);
        company.is_refused("ada", word);
    }
    company.provider.set_fault(Fault::None);
    assert_eq!(company.sign_in("ada", "/").0, 200);
}

#[test]
fn a_public_client_has_no_secret_and_an_issuer_is_who_it_says() {
    let company = Company::at(OidcProvider::new(false), USUAL);
    company.provider.set_fault(Fault::MetadataIssuer);
    company.is_refused("ada", "it calls itself");
    company.provider.set_fault(Fault::None);
    until("it is asked again", || (company.sign_in("ada", "/").0 == 200).then_some(()));
    assert_eq!(company.groups("ada"), json!(["admin", "platform"]));
}

#[test]
fn who_is_not_meant_is_not_let_in_and_nobody_becomes_another() {
    let named = "client_secret_env = 'OIDC_SECRET'\nallow_domains = ['Acme.example']";
    let company = Company::new(named);
    let set = |(claims, userinfo)| company.provider.set_person(claims, userinfo);
    company.is_refused("ada", "nobody here lets you in");
    // By a domain that was verified, or named in the file of people.
    set(account("2", "eve@acme.example", &["/platform"]));
    assert_eq!(company.sign_in("eve", "/").0, 200);
    assert_eq!(company.groups("eve"), json!([]), "nothing stands for anything");
    let mut unverified = account("3", "ivy@acme.example", &[]);
    unverified.0["email_verified"] = json!(false);
    set(unverified);
    company.is_refused("ivy", "verified");
    set(account("4", "bob@example.com", &[]));
    assert_eq!(company.sign_in("bob", "/").0, 200);
    assert_eq!(company.groups("bob"), json!(["ops"]));

    // The address was given to somebody else: they are not who had it.
    set(account("5", "eve@acme.example", &[]));
    company.is_refused("other", "another account");
    assert_eq!(company.person("eve").as_deref(), Some("person:eve@acme.example"));
    let revoke = ["keys", "revoke", "--person", "eve@acme.example"];
    let said = company.served.world.ran(0, &revoke).stderr;
    assert!(said.contains("the name is free"), "{said}");
    assert_eq!(company.person("eve"), None);
    company.served.world.ran(4, &revoke);
    assert_eq!(company.sign_in("other", "/").0, 200);
}

#[test]
fn a_name_that_somebody_chose_is_never_the_name_of_another() {
    let company = Company::new(
        "client_secret_env = 'OIDC_SECRET'\nperson_claim = 'preferred_username'\nallow_everybody = true",
    );
    for (name, person) in [("local", "person:127.0.0.1/local"), ("lea", "person:127.0.0.1/lea")] {
        let claims = json!({ "sub": name, "preferred_username": name });
        company.provider.set_person(claims, json!({ "sub": name }));
        assert_eq!(company.sign_in(name, "/").0, 200);
        assert_eq!(company.person(name).as_deref(), Some(person));
        let (_, server) = company.get(name, "/v1/server");
        assert_eq!(server["rights"]["administer"], false, "{server}");
    }
    company.provider.set_person(json!({ "sub": "x", "preferred_username": "a b" }), json!({}));
    company.is_refused("odd", "a name that can't be one here");
}

#[test]
fn a_login_is_of_the_browser_that_began_it() {
    let company = Company::new(&format!("client_secret_env = 'OIDC_SECRET'\n{USUAL}"));
    // An attacker takes their own login as far as the address that comes back, and sends it.
    let jar = company.jar("attacker");
    let begun = [
        "--cookie-jar",
        &jar,
        "--output",
        "/dev/null",
        "--write-out",
        "%{redirect_url}\n%{http_code}",
    ];
    let (_, at_provider) = company.served.curl(&begun, "/login/oidc/begin");
    let curl = |args: &[&str]| {
        let mut curl = company.served.world.command("curl");
        String::from_utf8(curl.arg("--silent").args(args).output().unwrap().stdout).unwrap()
    };
    let back = curl(&["--write-out", "%{redirect_url}", &at_provider]);
    let path = back.strip_prefix(&company.served.url).unwrap().to_owned();
    assert!(path.starts_with("/login/oidc?code="), "{path}");
    let tokens = company.provider.tokens();
    let (status, page) = company.served.curl(&[], &path);
    assert_eq!((status, page.contains("began no login here")), (401, true), "{page}");
    let victim = company.jar("victim");
    company.served.curl(&["--cookie-jar", &victim], "/login/oidc/begin");
    let (status, page) = company.served.curl(&["--cookie", &victim], &path);
    assert_eq!((status, page.contains("another login")), (401, true), "{page}");
    assert_eq!(company.provider.tokens(), tokens, "the provider was not even asked");
    // Who began it is logged in, once.
    assert_eq!(company.served.curl(&["--cookie", &jar], &path).0, 200);
    let (status, page) = company.served.curl(&["--cookie", &jar], &path);
    assert_eq!((status, page.contains("invalid_grant")), (401, true), "{page}");
    assert!(!page.contains("<b>"), "what a provider says is text: {page}");

    for next in ["//evil.example", "/%5Cevil.example", "/%09/evil.example", "https://evil.example"]
    {
        let (status, page) = company.sign_in("ada", next);
        assert_eq!((status, page.contains("url=/\"")), (200, true), "{next}: {page}");
    }
    // By another of its names a browser is brought to the one that the provider knows.
    let port = company.served.url.rsplit(':').next().unwrap().to_owned();
    let host = format!("Host: localhost:{port}");
    let redirected = [
        "--header",
        &host,
        "--output",
        "/dev/null",
        "--write-out",
        "%{redirect_url}\n%{http_code}",
    ];
    let (_, to) = company.served.curl(&redirected, "/login/oidc/begin?next=/a%253Fb");
    assert_eq!(to, format!("{}/login/oidc/begin?next=/a%253Fb", company.served.url));
}

#[test]
fn the_command_line_acts_for_who_came_by_the_provider_as_long_as_their_login_lasts() {
    let company = Company::new(&format!("client_secret_env = 'OIDC_SECRET'\n{USUAL}"));
    let served = &company.served;
    assert_eq!(company.sign_in("ada", "/").0, 200);
    let laptop = World::new();
    let tmux = Tmux::new(&laptop, (100, 40), &format!("$O login {} --name team", served.url));
    tmux.until("It shows the code");
    let shown = tmux.shown();
    let code = shown.split("device?code=").nth(1).unwrap().split_whitespace().next().unwrap();
    let allow = ["--cookie", &company.jar("ada"), "--json", r#"{"answer":"allow"}"#];
    assert_eq!(served.curl(&allow, &format!("/v1/login/device/{code}")).0, 204);
    tmux.until("logged in to");
    assert_eq!(tmux.ended(), 0);
    let listed = laptop.ran(0, &["context", "ls"]).stdout;
    assert!(listed.contains("person:ada@example.com"), "{listed}");
    laptop.ran(0, &["sessions", "ls"]);

    // As if twelve hours had passed.
    let file = served.world.harness().join("people.json");
    let mut people: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    people["person:ada@example.com"]["ends_ms"] = json!(1);
    fs::write(&file, people.to_string()).unwrap();
    let over = laptop.ran(3, &["sessions", "ls"]).stderr;
    assert!(over.contains("the login of person:ada@example.com is over"), "{over}");
    assert_eq!(company.person("ada"), None);
    assert_eq!(company.sign_in("ada", "/").0, 200);
    laptop.ran(0, &["sessions", "ls"]);
    // A key of a program of its own has no login that could end.
    let key = served.world.ran(0, &["keys", "create", "ci", "--person", "ci"]).stdout;
    assert_eq!(served.curl(&["--oauth2-bearer", key.trim()], "/v1/server").0, 200);
}

#[test]
fn a_server_without_the_secret_that_it_is_to_have_does_not_begin() {
    let world = World::new();
    let table =
        "[oidc]\nissuer = 'https://id.example'\nclient_id = 'a'\nclient_secret_env = 'NOT_SET'\n";
    world.configure(table);
    let dir = world.dir("repo", &[("file", b"one\n")]).display().to_string();
    let script = world.script(&[]);
    let args = ["serve", "--listen", "127.0.0.1:0", "--dir", &dir, "--script", &script];
    let ran = world.ran(3, &args);
    assert!(ran.stderr.contains("NOT_SET"), "{ran:?}");
}
