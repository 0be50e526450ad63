//! Drives a session in this process and shows it, until it waits.

use outrigger_agent::{Park, Record, Seq, SessionId};
use outrigger_engine::{EmbeddedHost, Engine, Error, Host, Notice};
use outrigger_store::{Journal, Retry, load_all};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;

use super::ask::{AskOutcome, Asker, OwnQuestions, asks};
use super::ask_host::HostAsker;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::session;
use crate::show::{Screen, Tone};
use crate::waiting::PendingApproval;

/// Ctrl-C and a polite request to end, listened to from before the first step to after the
/// last.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(crate) fn listen() -> Outcome<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::from_error(Kind::AgentFailed, &error));
        let interrupt = listen(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: listen(SignalKind::terminate())? })
    }

    /// Ends when one comes.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Does something that is safe to repeat, unless Ctrl-C comes first.
    pub(crate) async fn or_left<T>(
        &mut self,
        session: &SessionId,
        work: impl Future<Output = Outcome<T>>,
    ) -> Outcome<T> {
        tokio::select! {
            done = work => done,
            () = self.next() => Err(left(session)),
        }
    }
}

/// What a session is driven with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driving<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) engine: &'a Engine,
    pub(crate) journal: &'a dyn Journal,
    pub(crate) session: &'a SessionId,
}

/// Drives. Ctrl-C interrupts the turn; a second one leaves it to be resumed. Whoever sits at a
/// terminal is asked what the rules ask, and about hosts. An answer that comes just when it
/// stops to wait for one is acted on.
pub(crate) async fn drive(
    driving: Driving<'_>,
    after: Seq,
    screen: &mut Screen,
    interrupts: &mut Interrupts,
) -> Outcome<Park> {
    let Driving { paths, engine, journal, session } = driving;
    let mut notices = engine.feed().listen();
    let host = EmbeddedHost::new(engine.clone());
    let mut shown = after;
    learn_before(driving, &mut shown, screen).await?;
    let mut asker = Asker::new(OwnQuestions { paths, engine, journal, session });
    let mut hosts = HostAsker::new(paths, engine, screen);
    host.poke(session)?;
    let (mut interrupted, mut ticks) = (0, screen.ticks());
    // What it waits for, while somebody is asked.
    let mut parked: Option<Park> = None;
    loop {
        let came = tokio::select! {
            biased;
            notice = notices.recv() => {
                match noticed(driving, notice, &mut shown, screen).await? {
                    MayAsk::Yes => asker.look(screen).await?,
                    MayAsk::No => AskOutcome::Open,
                }
            }
            () = interrupts.next() => {
                interrupted += 1;
                if interrupted > 1 || parked.is_some() {
                    return Err(left(session));
                }
                stop(driving, &host, screen).await?;
                AskOutcome::Open
            }
            line = screen.line(), if asker.is_open() => asker.take(line?, screen).await?,
            line = screen.line(), if hosts.is_open() => {
                hosts.take(line?, screen).await?;
                AskOutcome::Open
            }
            () = asker.patience() => {
                asker.leave(screen, "nobody answered");
                AskOutcome::Left
            }
            park = host.parked(session), if parked.is_none() => {
                let park = park.map_err(|error| Failure::from(&*error).hint(resume_hint(session)))?;
                catch_up(journal, session, &mut shown, screen).await?;
                if !matches!(park, Park::Answers(_)) {
                    hosts.settle(engine, session, screen).await?;
                    catch_up(journal, session, &mut shown, screen).await?;
                    return Ok(park);
                }
                let unanswered = PendingApproval::below(journal, session).await?;
                parked = Some(park).filter(|_| !unanswered.is_empty());
                if parked.is_some() { AskOutcome::Left } else { AskOutcome::Answered }
            }
            _ = ticks.tick() => {
                screen.tick();
                if asker.is_open() { hosts.give_way() } else { hosts.look(screen).await }
                let over = parked.is_some() && asker.is_over(screen).await?;
                if over { AskOutcome::Answered } else { AskOutcome::Open }
            }
        };
        let came = if came == AskOutcome::Left { asker.look(screen).await? } else { came };
        match (came, parked.take()) {
            (AskOutcome::Answered, _) => host.poke(session)?,
            (AskOutcome::Left, Some(park)) => return Ok(park),
            (_, still) => parked = still,
        }
    }
}

/// Whether something happened after which somebody may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MayAsk {
    Yes,
    No,
}

/// Shows what is told of the session and its subagents.
async fn noticed(
    driving: Driving<'_>,
    notice: Result<(SessionId, Notice), RecvError>,
    shown: &mut Seq,
    screen: &mut Screen,
) -> Outcome<MayAsk> {
    let Driving { journal, session, .. } = driving;
    match notice {
        Ok((from, Notice::Appended(record))) => {
            if from != *session {
                screen.event_below(&from, &record);
            } else if record.seq == shown.next() {
                screen.event(&record);
                *shown = record.seq;
            } else if record.seq > *shown {
                catch_up(journal, session, shown, screen).await?;
            }
            if asks(&record) {
                return Ok(MayAsk::Yes);
            }
        }
        Ok((from, Notice::Live(effect, live))) => {
            screen.live((from == *session).then_some(effect), &live);
        }
        Ok((_, Notice::Warning(warning))) => screen.warning(&warning),
        Ok((_, Notice::Elsewhere(_))) | Err(RecvError::Lagged(_)) => {
            catch_up(journal, session, shown, screen).await?;
        }
        Err(RecvError::Closed) => return Err(Failure::from(Error::Driver(session.clone()))),
    }
    Ok(MayAsk::No)
}

/// Stops the turn.
async fn stop(driving: Driving<'_>, host: &EmbeddedHost, screen: &Screen) -> Outcome {
    let Driving { engine, session, .. } = driving;
    screen.note(Tone::Warning, "! stopping; press Ctrl-C again to leave at once");
    match engine.interrupt(session, session::WHO).await {
        // What is known is still held: it is for the person to give it up.
        Err(Error::Journal { source, .. }) if source.retry() == Retry::Later => {
            screen.note(Tone::Warning, format!("! it can't be written down: {source}"));
        }
        done => done?,
    }
    Ok(host.poke(session)?)
}

/// Takes note of what happened until now, and shows what of it was not shown.
async fn learn_before(driving: Driving<'_>, shown: &mut Seq, screen: &mut Screen) -> Outcome {
    let Driving { journal, session, .. } = driving;
    let after = *shown;
    if after > Seq::default() {
        let learn = |record: Record| {
            if record.seq <= after {
                screen.learn(&record)
            }
        };
        load_all(journal, session, Seq::default(), learn).await?;
    }
    catch_up(journal, session, shown, screen).await?;
    learn_below(journal, session, screen).await
}

/// Takes note of what subagents did that go on now.
async fn learn_below(journal: &dyn Journal, session: &SessionId, screen: &mut Screen) -> Outcome {
    for (below, _) in session::tree(journal, session).await?.into_iter().skip(1) {
        let learn = |record| screen.learn_below(&below, &record);
        load_all(journal, &below, Seq::default(), learn).await?;
    }
    Ok(())
}

/// Shows what the journal has beyond what was shown.
pub(crate) async fn catch_up(
    journal: &dyn Journal,
    session: &SessionId,
    shown: &mut Seq,
    screen: &mut Screen,
) -> Outcome {
    let mut records = Vec::new();
    load_all(journal, session, *shown, |record| records.push(record)).await?;
    for record in records {
        screen.event(&record);
        *shown = record.seq;
    }
    Ok(())
}

fn left(session: &SessionId) -> Failure {
    Failure::new(Kind::Interrupted, format!("left session {session} where it is"))
        .hint(resume_hint(session))
}

pub(crate) fn resume_hint(session: &SessionId) -> String {
    format!("`outrigger sessions resume {session}` goes on where it stopped.")
}
