//! Whether all is well, for people, and whether to restart or to route, for probes.
//!
//! Three answers, because they have three consequences: `health` wakes a person, `ready` takes an
//! instance out of the traffic, `live` restarts its process. A dead letter is for a person alone.

use std::fmt;
use std::time::Duration;

use super::Admin;
use crate::command::ports::Vitals;
use crate::error::{SchemaError, StoreError};
use crate::ids::CommandId;
use crate::store::model::DeadLetter;
use crate::time::human;

/// How many dead letters `health` names.
const NAMED: usize = 5;
/// How long `health` and `ready` wait for the database: a probe that hangs is no answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What `health`, `ready` and `live` found: up exactly if there are no reasons against it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Health {
    /// Why it is down. Empty: it is up.
    pub reasons: Vec<Reason>,
    /// What a person should know, and what is no reason to be down.
    pub notices: Vec<Notice>,
}

impl Health {
    /// Whether there is no reason to be down.
    pub fn is_up(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// `up` or `down`, then a line for each reason and notice.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_up() { "up" } else { "down" })?;
        for reason in &self.reasons {
            write!(f, "\n{reason}")?;
        }
        for notice in &self.notices {
            write!(f, "\n(notice) {notice}")?;
        }
        Ok(())
    }
}

/// Something is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Commands have failed for good, and nobody has retried or killed them.
    DeadLetters {
        /// How many.
        count: u64,
        /// The newest few.
        newest: Vec<DeadLetter>,
    },
    /// The database does not answer.
    DatabaseAway {
        /// For how long the runtime has had no answer; none if only this call got none.
        since: Option<Duration>,
        /// What was said.
        error: String,
    },
    /// The tables are missing, or another version's.
    Schema(SchemaError),
    /// The client's runtime has not started, shuts down, or is gone.
    NotRunning,
    /// The scheduler has not turned for this long.
    SchedulerStalled(Duration),
    /// The event loop of the runtime has not turned for this long.
    EventLoopStalled(Duration),
    /// The instance has had no accepted heartbeat for too long: it starts nothing.
    LeaseLost,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadLetters { count, newest } => {
                write!(f, "{count} dead letter(s), to be retried or killed; the newest:")?;
                newest.iter().try_for_each(|letter| write!(f, "\n  {letter}"))
            }
            Self::DatabaseAway { since: Some(since), error } => {
                write!(f, "the database has not answered for {}: {error}", human(*since))
            }
            Self::DatabaseAway { since: None, error } => {
                write!(f, "the database does not answer: {error}")
            }
            Self::Schema(error) => error.fmt(f),
            Self::NotRunning => {
                f.write_str("the runtime is not running: it has not started, shuts down, or is gone")
            }
            Self::SchedulerStalled(since) => write!(
                f,
                "the scheduler has not turned for {}: nothing is claimed here",
                human(*since)
            ),
            Self::EventLoopStalled(since) => write!(
                f,
                "the runtime's event loop has not turned for {}: something blocks its thread",
                human(*since)
            ),
            Self::LeaseLost => f.write_str(
                "the instance has lost its lease: it starts nothing until a heartbeat is accepted again",
            ),
        }
    }
}

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Commands wait whose stored types this binary has no handler for. Another one may have.
    UnknownTypes(Vec<String>),
    /// An attempt runs for longer than the runtime's `long_running`.
    LongRunning {
        /// The command.
        id: CommandId,
        /// Its type.
        command_type: &'static str,
        /// For how long.
        since: Duration,
    },
    /// An attempt was told to stop, by its timeout or from outside, and its code still runs.
    Overrunning {
        /// The command.
        id: CommandId,
        /// Its type.
        command_type: &'static str,
        /// For how long.
        since: Duration,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTypes(types) => {
                let names: Vec<_> = types.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "commands wait for a handler that is not here: {}", names.join(", "))
            }
            Self::LongRunning { id, command_type, since } => {
                write!(f, "command {id} `{command_type}` has been running for {}", human(*since))
            }
            Self::Overrunning { id, command_type, since } => write!(
                f,
                "command {id} `{command_type}` was told to stop {} ago and its code still runs",
                human(*since)
            ),
        }
    }
}

impl Admin {
    /// Whether a person has to look: dead letters, a database that is away, a runtime that does not
    /// work. A failure that nobody sees is worse than an alarm.
    ///
    /// A client without a runtime in its process judges by the database alone. Waits at most five
    /// seconds for it.
    pub async fn health(&self) -> Health {
        let mut health = self.ready().await;
        let vitals = self.vitals();
        if let Some(vitals) = &vitals {
            health.reasons.extend(loop_stalled(vitals));
            let stalled = vitals.scheduler_stalled.filter(|_| vitals.running);
            health.reasons.extend(stalled.map(Reason::SchedulerStalled));
            health.notices.extend(busy_notices(vitals));
        }
        if !health.reasons.iter().any(is_about_the_database) {
            let known = vitals.map(|vitals| vitals.known_types);
            match in_time(self.table(known)).await {
                Ok((reason, notice)) => {
                    health.reasons.extend(reason);
                    health.notices.extend(notice);
                }
                Err(error) => health.reasons.push(database(error)),
            }
        }
        health
    }

    /// Whether this instance can do its work: the database answers and has the right tables, the
    /// runtime runs, and its lease holds. Dead letters are no reason.
    ///
    /// A client without a runtime in its process judges by the database alone. Waits at most five
    /// seconds for it.
    pub async fn ready(&self) -> Health {
        let mut health = Health::default();
        if let Some(runtime) = self.client.runtime() {
            match runtime.map(|runtime| runtime.vitals()).filter(|vitals| vitals.running) {
                None => health.reasons.push(Reason::NotRunning),
                Some(vitals) => {
                    if !vitals.lease_holds {
                        health.reasons.push(Reason::LeaseLost);
                    }
                    if let Some((since, error)) = vitals.database_away {
                        health.reasons.push(Reason::DatabaseAway { since: Some(since), error });
                        return health;
                    }
                }
            }
        }
        if let Err(error) = in_time(self.client.database().store.ping()).await {
            health.reasons.push(database(error));
        }
        health
    }

    /// Whether this process should go on: the event loop of its runtime turns. Neither dead letters
    /// nor an absent database are a reason, since a restart cures neither. Never waits.
    pub fn live(&self) -> Health {
        let stalled = self.vitals().as_ref().and_then(loop_stalled);
        Health { reasons: stalled.into_iter().collect(), notices: Vec::new() }
    }

    fn vitals(&self) -> Option<Vitals> {
        self.client.runtime().flatten().map(|runtime| runtime.vitals())
    }

    /// What the table says: dead letters, and types that wait for a handler.
    async fn table(
        &self,
        known: Option<Vec<&'static str>>,
    ) -> Result<(Option<Reason>, Option<Notice>), StoreError> {
        let store = &self.client.database().store;
        let (count, newest) = store.dead(NAMED).await?;
        let dead = (count > 0).then_some(Reason::DeadLetters { count, newest });
        let mut unknown = Vec::new();
        if let Some(known) = known {
            unknown = store.pending_types().await?;
            unknown.retain(|stored| !known.contains(&stored.as_str()));
        }
        Ok((dead, (!unknown.is_empty()).then_some(Notice::UnknownTypes(unknown))))
    }
}

/// Of a runtime that is meant to turn: one that was shut down stands still, and its process may well
/// have other work to end.
fn loop_stalled(vitals: &Vitals) -> Option<Reason> {
    vitals.loop_stalled.filter(|_| vitals.running).map(Reason::EventLoopStalled)
}

fn busy_notices(vitals: &Vitals) -> impl Iterator<Item = Notice> {
    let long = vitals.long_running.iter().map(|&(id, command_type, since)| Notice::LongRunning {
        id,
        command_type,
        since,
    });
    let over = vitals.overrunning.iter().map(|&(id, command_type, since)| Notice::Overrunning {
        id,
        command_type,
        since,
    });
    long.chain(over)
}

async fn in_time<T>(ask: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    tokio::time::timeout(PATIENCE, ask).await.unwrap_or(Err(StoreError::NoAnswer(PATIENCE)))
}

fn database(error: StoreError) -> Reason {
    match error {
        StoreError::Schema(error) => Reason::Schema(error),
        error => Reason::DatabaseAway { since: None, error: with_sources(&error) },
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}

fn is_about_the_database(reason: &Reason) -> bool {
    matches!(reason, Reason::DatabaseAway { .. } | Reason::Schema(_))
}
