//! What is done on a route at a time, before it is another's turn.

use std::io;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::figure::Figure;
use crate::host;
use crate::limits;
use crate::route::{Connection, Route};

/// What is measured on every route.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Visit {
    /// A request on a connection that is there.
    Request,
    /// A connection and its first request.
    Connection,
    /// Requests of many connections at once.
    Crowd,
    /// One large body.
    Body,
}

impl Visit {
    /// In the order in which they are done.
    pub(crate) const ALL: [Self; 4] = [Self::Request, Self::Connection, Self::Crowd, Self::Body];

    /// How often it is each route's turn.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::Request | Self::Connection => limits::ROUNDS,
            Self::Crowd => limits::CROWD_ROUNDS,
            Self::Body => limits::BODY_ROUNDS,
        }
    }

    /// Whether the figure is a time, which a proxy adds to.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Self::Request | Self::Connection)
    }

    pub(crate) fn figure(self, route: &str, samples: Vec<f64>) -> Figure {
        let (name, unit) = match self {
            Self::Request => ("request", "us"),
            Self::Connection => ("connection", "ms"),
            Self::Crowd => ("requests", "1/s"),
            Self::Body => ("body", "MB/s"),
        };
        Figure::of(format!("{name}/{route}"), unit, samples)
    }

    /// Does it, and gives the samples.
    pub(crate) async fn of(self, route: &Route) -> io::Result<Vec<f64>> {
        let visit = async {
            match self {
                Self::Request => requests(route).await,
                Self::Connection => connections(route).await,
                Self::Crowd => crowd(route).await,
                Self::Body => body(route).await,
            }
        };
        tokio::time::timeout(Duration::from_millis(limits::VISIT_MS_MAX), visit).await?
    }
}

async fn requests(route: &Route) -> io::Result<Vec<f64>> {
    let mut connection = route.connect().await?;
    let end = Instant::now() + Duration::from_millis(limits::REQUESTS_MS_MAX);
    let mut samples = Vec::new();
    for number in 0..limits::WARM_REQUESTS + limits::REQUESTS {
        let begun = Instant::now();
        connection.ask().await?;
        if number >= limits::WARM_REQUESTS {
            samples.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        if Instant::now() > end && !samples.is_empty() {
            break;
        }
    }
    Ok(samples)
}

async fn connections(route: &Route) -> io::Result<Vec<f64>> {
    let end = Instant::now() + Duration::from_millis(limits::CONNECTIONS_MS_MAX);
    let mut samples = Vec::new();
    while samples.len() < limits::CONNECTIONS && (samples.is_empty() || Instant::now() < end) {
        let begun = Instant::now();
        let mut connection = route.connect().await?;
        connection.ask().await?;
        samples.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(samples)
}

async fn crowd(route: &Route) -> io::Result<Vec<f64>> {
    let mut crowd = Vec::new();
    for _ in 0..limits::CROWD_CONNECTIONS {
        let mut connection = route.connect().await?;
        connection.ask().await?;
        crowd.push(connection);
    }
    let begun = Instant::now();
    let end = begun + Duration::from_millis(limits::CROWD_MS);
    let mut asking: JoinSet<io::Result<u32>> =
        crowd.into_iter().map(|connection| ask_until(connection, end)).collect();
    let mut answers = 0;
    while let Some(one) = asking.join_next().await {
        answers += one??;
    }
    Ok(vec![f64::from(answers) / begun.elapsed().as_secs_f64()])
}

async fn ask_until(mut connection: Connection, end: Instant) -> io::Result<u32> {
    let mut answers = 0;
    while Instant::now() < end {
        connection.ask().await?;
        answers += 1;
    }
    Ok(answers)
}

async fn body(route: &Route) -> io::Result<Vec<f64>> {
    let mut connection = route.connect().await?;
    connection.ask().await?;
    let begun = Instant::now();
    let end = begun + Duration::from_millis(limits::BODY_MS_MAX);
    let bytes = connection.fetch(host::BODY_PATH, Some(end)).await?;
    Ok(vec![bytes as f64 / 1e6 / begun.elapsed().as_secs_f64()])
}
