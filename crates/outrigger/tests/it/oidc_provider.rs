//! An OpenID provider on loopback: real signatures, real HTTP, and whatever it does wrong.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256,
};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// As what it knows the server.
pub(crate) const CLIENT: &str = "outrigger";
/// The client's secret.
pub(crate) const SECRET: &str = "s3cr3t-0123456789-abcdefghij";
/// What the person's account is asked for by.
const ACCESS: &str = "at-0123456789-abcdefghijklmnop";

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Audience,
    Party,
    Expired,
    Future,
    Nonce,
    NoNonce,
    OtherKey,
    AlgNone,
    HmacWithPublicKey,
    TokenIssuer,
    MetadataIssuer,
    AnswerIssuer,
    OtherUserinfo,
    Huge,
    Hangs,
    Refuses,
}

impl Fault {
    /// Those with which nobody may be logged in, each with a word of what is said.
    pub(crate) const FATAL: [(Self, &str); 15] = [
        (Self::Audience, "InvalidAudience"),
        (Self::Party, "azp"),
        (Self::Expired, "ExpiredSignature"),
        (Self::Future, "iat"),
        (Self::Nonce, "nonce"),
        (Self::NoNonce, "nonce"),
        (Self::OtherKey, "InvalidSignature"),
        (Self::AlgNone, "its head"),
        (Self::HmacWithPublicKey, "HS256"),
        (Self::TokenIssuer, "InvalidIssuer"),
        (Self::AnswerIssuer, "iss"),
        (Self::OtherUserinfo, "somebody else"),
        (Self::Huge, "more than 1048576 bytes"),
        (Self::Hangs, "nothing came within 10 s"),
        (Self::Refuses, "access_denied"),
    ];
}

/// A key that signs tokens.
enum TokenKey {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
}

impl TokenKey {
    fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    fn ec() -> Self {
        Self::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn alg(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
        }
    }

    fn public(&self) -> Vec<u8> {
        match self {
            // RSAPublicKey in DER: 2,048 bits of modulus, and 65537 in three bytes (RFC 8017).
            Self::Rsa(key) => key.public_key().as_ref()[9..265].to_vec(),
            // A point that is not compressed.
            Self::Ec(key) => key.public_key().as_ref()[1..].to_vec(),
        }
    }

    fn jwk(&self, id: &str) -> Value {
        let (public, text) = (self.public(), |bytes: &[u8]| BASE64.encode(bytes));
        let mut key = match self {
            Self::Rsa(_) => json!({ "kty": "RSA", "n": text(&public), "e": "AQAB" }),
            Self::Ec(_) => {
                json!({ "kty": "EC", "crv": "P-256", "x": text(&public[..32]), "y": text(&public[32..]) })
            }
        };
        key["kid"] = json!(id);
        key["use"] = json!("sig");
        key["alg"] = json!(self.alg());
        key
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::Ec(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
        }
    }
}

/// A code that was given out: nonce, challenge and where it was sent.
type IssuedCode = (String, String, String);

struct ProviderState {
    url: String,
    key: TokenKey,
    key_id: String,
    fault: Fault,
    /// What stands in ID tokens.
    claims: Value,
    /// What else is said of the person.
    userinfo: Value,
    codes: HashMap<String, IssuedCode>,
    /// Whether the client has a secret.
    has_secret: bool,
    tokens: usize,
}

/// The provider. Its threads end with the test's process.
pub(crate) struct OidcProvider {
    pub(crate) url: String,
    state: Arc<Mutex<ProviderState>>,
}

impl OidcProvider {
    /// One with an account of Ada.
    pub(crate) fn new(has_secret: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let claims = json!({ "sub": "1", "email": "Ada@example.com", "email_verified": true });
        let userinfo = json!({ "sub": "1", "groups": ["/platform", "/people"] });
        let state = ProviderState {
            url: url.clone(),
            key: TokenKey::rsa(),
            key_id: "first".to_owned(),
            fault: Fault::None,
            claims,
            userinfo,
            codes: HashMap::new(),
            has_secret,
            tokens: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let kept = Arc::clone(&state);
        std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming().flatten() {
                let Some(asked) = Asked::read(&stream) else { continue };
                match kept.lock().unwrap().answer(&asked) {
                    Some(answer) => drop((&stream).write_all(answer.as_bytes())),
                    None => hanging.push(stream),
                }
            }
        });
        Self { url, state }
    }

    /// How many tokens it gave out.
    pub(crate) fn tokens(&self) -> usize {
        self.state.lock().unwrap().tokens
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        self.state.lock().unwrap().fault = fault;
    }

    /// What is said of whoever logs in from now on: in the token, and beside it.
    pub(crate) fn set_person(&self, claims: Value, userinfo: Value) {
        let mut state = self.state.lock().unwrap();
        (state.claims, state.userinfo) = (claims, userinfo);
    }

    /// Signs by another key from now on, which is of another kind.
    pub(crate) fn rotate(&self) {
        let mut state = self.state.lock().unwrap();
        (state.key, state.key_id) = (TokenKey::ec(), "second".to_owned());
    }
}

/// What it is asked.
struct Asked {
    path: String,
    query: HashMap<String, String>,
    authorization: String,
    form: HashMap<String, String>,
}

impl Asked {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let header = |wanted: &str| {
            let pairs = lines.iter().filter_map(|line| line.split_once(": "));
            pairs.into_iter().find(|it| it.0.eq_ignore_ascii_case(wanted)).map(|it| it.1.to_owned())
        };
        let length = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        let mut body = String::new();
        reader.take(length).read_to_string(&mut body).ok()?;
        let target = lines.first()?.split(' ').nth(1)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let authorization = header("authorization").unwrap_or_default();
        Some(Self { path: path.to_owned(), query: pairs(query), authorization, form: pairs(&body) })
    }
}

fn pairs(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect()
}

/// A value of a form.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(&behind[..2]).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &behind[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn whole(status: &str, head: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status}\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

fn object(value: &Value) -> Option<String> {
    whole("200 OK", "content-type: application/json\r\n", &value.to_string())
}

fn refused(error: &str) -> Option<String> {
    let body = json!({ "error": error, "error_description": "it is <b>wrong</b>" });
    whole("400 Bad Request", "content-type: application/json\r\n", &body.to_string())
}

impl ProviderState {
    fn answer(&mut self, asked: &Asked) -> Option<String> {
        match asked.path.as_str() {
            "/.well-known/openid-configuration" => object(&self.metadata()),
            "/keys" => object(&json!({ "keys": [{ "kty": "later" }, self.key.jwk(&self.key_id)] })),
            "/auth" => self.authorize(asked),
            "/token" => self.token(asked),
            "/userinfo" if asked.authorization == format!("Bearer {ACCESS}") => {
                let sub = if self.fault == Fault::OtherUserinfo {
                    &json!("2")
                } else {
                    &self.userinfo["sub"]
                };
                let mut said = self.userinfo.clone();
                said["sub"] = sub.clone();
                object(&said)
            }
            _ => whole("404 Not Found", "", ""),
        }
    }

    fn metadata(&self) -> Value {
        let url = &self.url;
        let issuer = if self.fault == Fault::MetadataIssuer { "https://evil.example" } else { url };
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{url}/auth"),
            "token_endpoint": format!("{url}/token"),
            "jwks_uri": format!("{url}/keys"),
            "userinfo_endpoint": format!("{url}/userinfo"),
            "authorization_response_iss_parameter_supported": true,
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        })
    }

    /// The person said yes at once.
    fn authorize(&mut self, asked: &Asked) -> Option<String> {
        let of = |name: &str| asked.query[name].clone();
        assert_eq!((of("response_type"), of("client_id")), ("code".to_owned(), CLIENT.to_owned()));
        assert_eq!(
            (of("scope"), of("code_challenge_method")),
            ("openid email groups".to_owned(), "S256".to_owned())
        );
        let (redirect, state) = (of("redirect_uri"), of("state"));
        let code = format!("code-{}", self.codes.len());
        self.codes.insert(code.clone(), (of("nonce"), of("code_challenge"), redirect.clone()));
        let issuer =
            if self.fault == Fault::AnswerIssuer { "https://evil.example" } else { &self.url };
        let answer = match self.fault {
            Fault::Refuses => format!("error=access_denied&state={state}"),
            _ => format!("code={code}&state={state}&iss={issuer}"),
        };
        whole("303 See Other", &format!("location: {redirect}?{answer}\r\n"), "")
    }

    fn token(&mut self, asked: &Asked) -> Option<String> {
        let form = |name: &str| asked.form.get(name).map(String::as_str).unwrap_or_default();
        let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{SECRET}")));
        let is_client = match self.has_secret {
            true => asked.authorization == basic,
            false => asked.authorization.is_empty() && form("client_id") == CLIENT,
        };
        if !is_client {
            return refused("invalid_client");
        }
        // Each is good once.
        let Some((nonce, challenge, redirect)) = self.codes.remove(form("code")) else {
            return refused("invalid_grant");
        };
        let verifier = digest::digest(&digest::SHA256, form("code_verifier").as_bytes());
        if BASE64.encode(verifier) != challenge || form("redirect_uri") != redirect {
            return refused("invalid_grant");
        }
        self.tokens += 1;
        match self.fault {
            Fault::Huge => object(&json!({ "id_token": "x".repeat(2 << 20) })),
            Fault::Hangs => None,
            _ => object(&json!({
                "access_token": ACCESS, "token_type": "Bearer", "id_token": self.id_token(&nonce),
            })),
        }
    }

    fn id_token(&self, nonce: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = self.claims.clone();
        for (name, value) in [
            ("iss", json!(self.url)),
            ("aud", json!(CLIENT)),
            ("iat", json!(now)),
            ("exp", json!(now + 300)),
            ("nonce", json!(nonce)),
        ] {
            claims[name] = value;
        }
        match self.fault {
            Fault::Audience => claims["aud"] = json!("another"),
            Fault::Party => claims["aud"] = json!([CLIENT, "another"]),
            Fault::Expired => claims["exp"] = json!(now - 300),
            Fault::Future => claims["iat"] = json!(now + 300),
            Fault::Nonce => claims["nonce"] = json!("another"),
            Fault::NoNonce => drop(claims.as_object_mut().unwrap().remove("nonce")),
            Fault::TokenIssuer => claims["iss"] = json!("https://evil.example"),
            _ => {}
        }
        let alg = match self.fault {
            Fault::AlgNone => "none",
            Fault::HmacWithPublicKey => "HS256",
            _ => self.key.alg(),
        };
        let head = json!({ "alg": alg, "kid": self.key_id });
        let message = [head, claims].map(|part| BASE64.encode(part.to_string())).join(".");
        let signature = match self.fault {
            Fault::AlgNone => Vec::new(),
            Fault::OtherKey => TokenKey::rsa().sign(message.as_bytes()),
            Fault::HmacWithPublicKey => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &self.key.public());
                hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
            }
            _ => self.key.sign(message.as_bytes()),
        };
        format!("{message}.{}", BASE64.encode(signature))
    }
}
