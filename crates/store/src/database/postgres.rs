//! A database of PostgreSQL, by its address, and the connections to it.
//!
//! Owns what an address may be: a unix socket, because a harness that is confined reaches nothing
//! else, and no secret, because an address stands in configurations and environments. Must never
//! change a database that is not ours.

use std::os::unix::fs::MetadataExt;
use std::str::FromStr;
use std::{fmt, fs};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::settings::Settings;
use crate::sql::connection::DatabaseConnection;
use crate::sql::{fault, schema};
use crate::{Error, limits};

const OPENING: &str = "opening the database";

/// Where a database of PostgreSQL is, and as whom it is opened.
#[derive(Clone)]
pub struct PostgresAddress {
    text: String,
    options: Box<PgConnectOptions>,
}

/// Why an address is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no address.
    #[error("it is no address of a database, as `postgres:///outrigger?host=/run/postgresql`")]
    Malformed,
    /// There is a password in it.
    #[error("it has a password, which is no part of an address: peer authentication needs none")]
    Password,
    /// It names no directory of a socket.
    #[error("it names no directory with the database's unix socket, as `host=/run/postgresql`")]
    NoSocket,
    /// It names no database.
    #[error("it names no database")]
    NoName,
}

impl FromStr for PostgresAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let rest =
            text.split_once("://").filter(|(kind, _)| ["postgres", "postgresql"].contains(kind));
        let (_, rest) = rest.ok_or(AddressError::Malformed)?;
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let has_password = authority.rsplit_once('@').is_some_and(|(who, _)| who.contains(':'));
        if has_password || rest.contains("password=") {
            return Err(AddressError::Password);
        }
        let mut options: PgConnectOptions = text.parse().map_err(|_| AddressError::Malformed)?;
        let names_user = authority.contains('@') || rest.contains("user=");
        if !names_user
            && std::env::var_os("PGUSER").is_none()
            && let Some(name) = system_user()
        {
            options = options.username(&name);
        }
        options.get_socket().ok_or(AddressError::NoSocket)?;
        options.get_database().ok_or(AddressError::NoName)?;
        Ok(Self { text: text.to_owned(), options: Box::new(options) })
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.options.get_database().unwrap_or_default();
        let socket = self.options.get_socket().map(|socket| socket.display().to_string());
        write!(f, "the PostgreSQL database {name} at {}", socket.unwrap_or_default())
    }
}

/// The system's name of whoever runs this, by which PostgreSQL lets them in (`peer`).
fn system_user() -> Option<String> {
    let uid = fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let of_user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    };
    users.lines().find_map(of_user)
}

/// As whom it is opened may be known by a password that stands elsewhere.
impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresAddress({self})")
    }
}

impl PostgresAddress {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn options(&self, settings: &[(&str, &str)]) -> PgConnectOptions {
        let options = PgConnectOptions::clone(&self.options).options(settings.iter().copied());
        let options = options.application_name("outrigger").disable_statement_logging();
        options.statement_cache_capacity(limits::STATEMENTS_KEPT)
    }

    async fn connect(&self, settings: &[(&str, &str)]) -> Result<PgConnection, Error> {
        self.options(settings).connect().await.map_err(|e| fault::of(OPENING, e))
    }

    /// Makes the tables, or what they lack.
    pub(super) async fn prepare(&self) -> Result<(), Error> {
        let mut connection = self.connect(&[]).await?;
        let made = schema::migrate_postgres(&mut connection, &self.to_string()).await;
        // Nothing is left to be lost.
        let _ = connection.close().await;
        made
    }

    async fn writing(&self, settings: Settings) -> Result<DatabaseConnection, Error> {
        let wait = format!("{}ms", settings.busy_wait_ms);
        // One that stands still in the middle of a commit would keep everybody else from theirs.
        let most = limits::COMMIT_IDLE_MS_MAX.to_string();
        let settings = [
            ("synchronous_commit", "on"),
            ("lock_timeout", &wait),
            ("idle_in_transaction_session_timeout", &most),
            ("jit", "off"),
        ];
        Ok(DatabaseConnection::postgres(self.connect(&settings).await?))
    }

    /// The connection by which a process lives: PostgreSQL ends it when nothing is heard over it.
    pub(super) async fn leasing(&self) -> Result<DatabaseConnection, Error> {
        let most = limits::LEASE_IDLE_MS_MAX.to_string();
        let settings = [("idle_session_timeout", most.as_str()), ("jit", "off")];
        Ok(DatabaseConnection::postgres(self.connect(&settings).await?))
    }

    /// A connection that is told what others change.
    pub(super) async fn listener(&self) -> Result<PgListener, sqlx::Error> {
        let one = PgPoolOptions::new().min_connections(0).max_connections(1);
        let one = one.max_lifetime(None).idle_timeout(None).connect_lazy_with(self.options(&[]));
        let mut listener = PgListener::connect_with(&one).await?;
        listener.eager_reconnect(false);
        Ok(listener)
    }

    async fn reading(&self) -> Result<DatabaseConnection, Error> {
        let settings = [("default_transaction_read_only", "on"), ("jit", "off")];
        Ok(DatabaseConnection::postgres(self.connect(&settings).await?))
    }
}

/// A database whose connections outlive who made them: their sockets are those of a thread that
/// does nothing else, because a runtime that ends takes its sockets with it.
#[derive(Debug)]
pub(super) struct PostgresServer {
    address: PostgresAddress,
    sockets: Handle,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<()>,
}

impl PostgresServer {
    pub(super) fn new(address: PostgresAddress) -> Result<Self, Error> {
        let wrong = |e| Error::io("starting the thread of the database's connections", e);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(wrong)?;
        let sockets = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("journal-postgres".to_owned())
            // Nothing is ever sent: it ends when nobody could.
            .spawn(move || runtime.block_on(ended).unwrap_or(()))
            .map_err(wrong)?;
        Ok(Self { address, sockets, _end: end })
    }

    pub(super) fn address(&self) -> &PostgresAddress {
        &self.address
    }

    /// Where connections are made that outlive who made them.
    pub(super) fn sockets(&self) -> &Handle {
        &self.sockets
    }

    /// The connection that writes.
    pub(super) async fn writing(&self, settings: Settings) -> Result<DatabaseConnection, Error> {
        let address = self.address.clone();
        let opened = self.sockets.spawn(async move { address.writing(settings).await });
        opened.await.unwrap_or(Err(Error::Closed))
    }

    /// A connection that reads.
    pub(super) async fn reading(&self) -> Result<DatabaseConnection, Error> {
        let address = self.address.clone();
        let opened = self.sockets.spawn(async move { address.reading().await });
        opened.await.unwrap_or(Err(Error::Closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_address_is_a_socket_and_no_secret() {
        let mut shown = String::new();
        for text in [
            "postgres:///outrigger?host=/run/postgresql",
            "postgresql://ada@%2Frun%2Fpostgresql/outrigger",
            "postgres://ada:secret@%2Frun%2Fpostgresql/outrigger",
            "postgres:///outrigger?host=/run/postgresql&password=secret",
            "postgres://db.example/outrigger",
            "mysql:///outrigger?host=/run/mysql",
            "outrigger",
        ] {
            let read = PostgresAddress::from_str(text).map(|address| format!("{address:?}"));
            shown += &format!("{text}: {}\n", read.unwrap_or_else(|error| error.to_string()));
        }
        expect![[r#"
            postgres:///outrigger?host=/run/postgresql: PostgresAddress(the PostgreSQL database outrigger at /run/postgresql)
            postgresql://ada@%2Frun%2Fpostgresql/outrigger: PostgresAddress(the PostgreSQL database outrigger at /run/postgresql)
            postgres://ada:secret@%2Frun%2Fpostgresql/outrigger: it has a password, which is no part of an address: peer authentication needs none
            postgres:///outrigger?host=/run/postgresql&password=secret: it has a password, which is no part of an address: peer authentication needs none
            postgres://db.example/outrigger: it names no directory with the database's unix socket, as `host=/run/postgresql`
            mysql:///outrigger?host=/run/mysql: it is no address of a database, as `postgres:///outrigger?host=/run/postgresql`
            outrigger: it is no address of a database, as `postgres:///outrigger?host=/run/postgresql`
        "#]].assert_eq(&shown);
    }

    #[test]
    fn without_a_name_it_is_opened_as_the_user_of_the_system() {
        let user =
            |text: &str| PostgresAddress::from_str(text).unwrap().options.get_username().to_owned();
        assert_eq!(user("postgres://ada@%2Frun/outrigger"), "ada");
        assert_eq!(user("postgres:///outrigger?host=/run&user=ada"), "ada");
        let own = fs::metadata("/proc/self").unwrap().uid();
        let line = fs::read_to_string("/etc/passwd").unwrap();
        let line = line.lines().find(|line| line.split(':').nth(2) == Some(&own.to_string()));
        let name = line.and_then(|line| line.split(':').next());
        for text in ["postgres:///outrigger?host=/run", "postgres://%2Frun/outrigger"] {
            assert_eq!(Some(&*user(text)), name, "{text}");
        }
    }
}
