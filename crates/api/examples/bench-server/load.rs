//! Many sessions at once, each with a follower.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::http::Client;
use crate::model::{self, Replies};
use crate::process::{self, Process, Taken};
use crate::{limits, ours, peer};

/// What a follower was given.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) session: String,
    /// Each event, in order.
    pub(crate) events: Vec<u64>,
    /// When each came.
    pub(crate) arrived: Vec<Instant>,
    /// From an event's time to when it came, of those since the stream was there.
    pub(crate) commit_ms: Vec<f64>,
    /// From a reply's last byte to its event.
    pub(crate) reply_ms: Vec<f64>,
    pub(crate) frames: usize,
}

/// What two turns of every session took of a server.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub(crate) commit_ms: Vec<f64>,
    pub(crate) reply_ms: Vec<f64>,
    pub(crate) events: usize,
    pub(crate) frames: usize,
    /// Of all of the server's processes for a turn: with the opening of its session, and without.
    pub(crate) first_cpu_ms: f64,
    pub(crate) turn_cpu_ms: f64,
    pub(crate) wall_s: f64,
    pub(crate) after: Taken,
    /// The most that the process itself had resident.
    pub(crate) own_mib: f64,
}

/// A round in which the server was killed.
#[derive(Debug, Default)]
pub(crate) struct KilledRound {
    /// From the kill until a new server is ready.
    pub(crate) ready_ms: f64,
    /// From the kill to each follower's next event.
    pub(crate) back_ms: Vec<f64>,
    pub(crate) events: usize,
}

impl Round {
    fn add(&mut self, followed: Followed) {
        self.commit_ms.extend(followed.commit_ms);
        self.reply_ms.extend(followed.reply_ms);
        self.events += followed.events.len();
        self.frames += followed.frames;
    }
}

/// Runs one task for each, at once, and gives what they give; an error where it takes too long.
async fn all<T: Send + 'static, F: Future<Output = io::Result<T>> + Send + 'static>(
    tasks: impl Iterator<Item = F>,
) -> io::Result<Vec<T>> {
    let mut running: JoinSet<_> = tasks.collect();
    let whole = async {
        let mut done = Vec::new();
        while let Some(one) = running.join_next().await {
            done.push(one.map_err(io::Error::other)??);
        }
        Ok(done)
    };
    tokio::time::timeout(Duration::from_millis(limits::ROUND_MS_MAX), whole).await?
}

/// Opens all sessions at once and follows each to its answer.
async fn open(client: &Client, replies: &Arc<Replies>, name: &str) -> io::Result<Vec<Followed>> {
    let one = |number| {
        let (client, replies) = (client.clone(), Arc::clone(replies));
        let key = format!("{name}-{number}");
        async move {
            let session = ours::open(&client, &key, model::WORKS).await?;
            let followed = Followed { session, ..Followed::default() };
            ours::follow(&client, followed, &replies).await
        }
    };
    all((0..limits::SESSIONS).map(one)).await
}

/// A round on our own server, and whether nothing is missing.
pub(crate) async fn ours(
    (process, client): &(Process, Client),
    replies: &Arc<Replies>,
    name: &str,
) -> io::Result<Round> {
    let (begun, before) = (Instant::now(), process::taken());
    let opened = open(client, replies, name).await?;
    let between = process::taken();
    let again = |followed: Followed| {
        let (client, replies) = (client.clone(), Arc::clone(replies));
        async move {
            let session = followed.session.clone();
            let follower = ours::follow(&client, followed, &replies);
            let both = async { tokio::try_join!(follower, ours::say(&client, &session)) };
            both.await.map(|(followed, ())| followed)
        }
    };
    let followed = all(opened.into_iter().map(again)).await?;
    let mut round = Round::taken(begun, before, between, process);
    for followed in followed {
        ours::check(client, &followed, 2).await?;
        round.add(followed);
    }
    Ok(round)
}

impl Round {
    fn taken(begun: Instant, before: Taken, between: Taken, process: &Process) -> Self {
        let after = process::taken();
        let each = |from: Taken, to: Taken| (to.cpu_ms - from.cpu_ms) / limits::SESSIONS as f64;
        Self {
            after,
            own_mib: process.own().1,
            first_cpu_ms: each(before, between),
            turn_cpu_ms: each(between, after),
            wall_s: begun.elapsed().as_secs_f64(),
            ..Self::default()
        }
    }
}

/// A round in the middle of which our own server is killed, and another one started.
pub(crate) async fn killed(
    world: &ours::World,
    (process, client): (Process, Client),
    replies: &Arc<Replies>,
) -> io::Result<(KilledRound, (Process, Client))> {
    let restarted = async {
        // poll: it is killed at a time, whatever happens then
        tokio::time::sleep(Duration::from_millis(limits::KILL_AFTER_MS)).await;
        let at = Instant::now();
        process.kill().await?;
        let served = world.serve(Some(client.server)).await?;
        Ok::<_, io::Error>((at, at.elapsed().as_secs_f64() * 1e3, served))
    };
    let (all, (at, ready_ms, served)) =
        tokio::try_join!(open(&client, replies, "killed"), restarted)?;
    let mut round = KilledRound { ready_ms, ..KilledRound::default() };
    for followed in &all {
        ours::check(&served.1, followed, 1).await?;
        round.events += followed.events.len();
        let next = followed.arrived.iter().find(|arrived| **arrived > at);
        round.back_ms.extend(next.map(|next| (*next - at).as_secs_f64() * 1e3));
    }
    Ok((round, served))
}

/// A turn of every session of a peer, of new ones where there are none; their names.
async fn peer_turn(
    client: &Client,
    sessions: Vec<String>,
    replies: &Arc<Replies>,
) -> io::Result<(Vec<String>, Followed)> {
    let follower = async {
        let follow = peer::follow(client, limits::SESSIONS, replies);
        tokio::time::timeout(Duration::from_millis(limits::ROUND_MS_MAX), follow).await?
    };
    tokio::try_join!(peer_say(client, sessions), follower)
}

async fn peer_say(client: &Client, sessions: Vec<String>) -> io::Result<Vec<String>> {
    let sessions = sessions.into_iter().map(Some).chain(std::iter::repeat(None));
    all(sessions.take(limits::SESSIONS).map(|session| {
        let client = client.clone();
        async move { peer::say(&client, session).await }
    }))
    .await
}

/// A round on a peer's server.
pub(crate) async fn peer(
    (process, client): &(Process, Client),
    replies: &Arc<Replies>,
) -> io::Result<Round> {
    let (begun, before) = (Instant::now(), process::taken());
    let (sessions, first) = peer_turn(client, Vec::new(), replies).await?;
    let between = process::taken();
    let (_, second) = peer_turn(client, sessions, replies).await?;
    let mut round = Round::taken(begun, before, between, process);
    round.add(first);
    round.add(second);
    Ok(round)
}

/// A round in the middle of which a peer's server is killed, and another one started: how many
/// sessions have their answer when all of them had the time for it.
pub(crate) async fn peer_killed(world: &peer::World) -> io::Result<usize> {
    let (process, client) = world.serve(None).await?;
    let begun = Instant::now();
    let sessions = peer_say(&client, Vec::new()).await?;
    tokio::time::sleep_until(begun + Duration::from_millis(limits::KILL_AFTER_MS)).await;
    drop(process);
    process::end_all();
    let (_process, client) = world.serve(Some(client.server)).await?;
    // poll: what does not go on says nothing
    tokio::time::sleep(Duration::from_millis(limits::PEER_BACK_MS)).await;
    let mut answered = 0;
    for session in &sessions {
        answered += usize::from(peer::is_answered(&client, session).await?);
    }
    Ok(answered)
}
