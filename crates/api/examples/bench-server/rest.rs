//! Many sessions in which nothing happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::http::Client;
use crate::{limits, model, ours, process};

/// What a server takes that has them.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// From its start until it is ready, until the first page of sessions came, and until what
    /// waits came.
    pub(crate) ready_ms: Vec<f64>,
    pub(crate) page_ms: Vec<f64>,
    pub(crate) approvals_ms: Vec<f64>,
    pub(crate) rss_mib: Vec<f64>,
    /// Questions that are shown.
    pub(crate) approvals: usize,
    /// How long it took to open one session, on average.
    pub(crate) open_ms: f64,
}

/// Opens them, and starts a server that has them again and again.
pub(crate) async fn measure(world: &ours::World, idle: usize, waiting: usize) -> io::Result<Rest> {
    let (process, client) = world.serve(None).await?;
    let begun = Instant::now();
    open(&client, idle, waiting).await?;
    let count = (idle + waiting).max(1);
    let open_ms = begun.elapsed().as_secs_f64() * 1e3 / count as f64;
    process.kill().await?;
    let mut rest = Rest { open_ms, ..Rest::default() };
    for _ in 0..limits::STARTS {
        let begun = Instant::now();
        let elapsed = || begun.elapsed().as_secs_f64() * 1e3;
        let (process, client) = world.serve(None).await?;
        rest.ready_ms.push(elapsed());
        client.get("/v1/sessions").await?;
        rest.page_ms.push(elapsed());
        let waits = client.get("/v1/approvals").await?;
        rest.approvals_ms.push(elapsed());
        rest.approvals = waits["data"].as_array().map_or(0, Vec::len);
        rest.rss_mib.push(process.own().0);
        process.kill().await?;
        process::end_all();
    }
    Ok(rest)
}

/// Opens all of them, those that wait among the others, and waits until all rest.
async fn open(client: &Client, idle: usize, waiting: usize) -> io::Result<()> {
    let (all, next) = (idle + waiting, Arc::<AtomicUsize>::default());
    let mut tasks = JoinSet::new();
    for _ in 0..limits::OPENERS {
        let (client, next) = (client.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= all {
                    return Ok::<_, io::Error>(());
                }
                let waits = (number + 1) * waiting / all > number * waiting / all;
                let model = if waits { ours::ASKS } else { model::ANSWERS };
                ours::open(&client, &format!("rest-{number}"), model).await?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(io::Error::other)??;
    }
    while running(client).await? > 0 {
        // poll: a list says how all sessions stand
        tokio::time::sleep(Duration::from_millis(limits::REST_PAUSE_MS)).await;
    }
    Ok(())
}

/// How many sessions work.
async fn running(client: &Client) -> io::Result<usize> {
    let (mut running, mut cursor) = (0, String::new());
    loop {
        let path = format!("/v1/sessions?limit={}{cursor}", limits::PAGE_SESSIONS);
        let page = client.get(&path).await?;
        let data = page["data"].as_array();
        running += data.map_or(0, |all| all.iter().filter(|it| it["group"] == "running").count());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(running),
        }
    }
}
