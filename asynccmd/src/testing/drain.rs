//! Runs everything that is due to its end.

use std::time::{Duration, Instant};

use futures_util::future::select_all;
use tokio::sync::watch;

use crate::runtime::Runtime;

/// The longest that a drain takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until nothing that this runtime has handlers for is due or running, in any of its databases. What
/// is due later (a delay, a backoff) stays; [`advance`](super::advance) brings it nearer.
///
/// ```no_run
/// # use asynccmd::{command, CommandError, Runtime, testing};
/// # #[command(type = "greet")]
/// # async fn greet(name: String) -> Result<(), CommandError> { Ok(()) }
/// # async fn run(runtime: Runtime) -> Result<(), Box<dyn std::error::Error>> {
/// submit_greet(&runtime.client(), "Ada".into()).await?;
/// testing::drain(&runtime).await;
/// # Ok(()) }
/// ```
///
/// # Panics
/// If the database cannot be read, or if something is due or running still after a minute.
pub async fn drain(runtime: &Runtime) {
    let mut activity: Vec<_> = runtime.ports().iter().map(|port| port.activity()).collect();
    let begin = Instant::now();
    let mut quiet = false;
    loop {
        activity.iter_mut().for_each(watch::Receiver::mark_unchanged);
        let (mut due, mut running) = (0, 0);
        for (client, port) in runtime.clients().iter().zip(runtime.ports()) {
            let store = &client.database().store;
            let counts = store
                .due_and_running(&port.stored_types())
                .await
                .unwrap_or_else(|error| panic!("the commands cannot be counted: {error:?}"));
            due += counts.0;
            running += counts.1;
        }
        // Twice: what an attempt submits while its end is written may be younger than the time that
        // the first count was made for.
        if due == 0 && running == 0 {
            if quiet {
                return;
            }
            quiet = true;
            continue;
        }
        quiet = false;
        assert!(
            begin.elapsed() < DEADLINE,
            "after {DEADLINE:?} {due} commands are due and {running} are held or running still"
        );
        runtime.ports().iter().for_each(|port| port.wake());
        // Every written end and every turn of a scheduler is a reason to look again. The time limit is
        // for what other instances do, of which nothing is heard here.
        let changed = select_all(activity.iter_mut().map(|activity| Box::pin(activity.changed())));
        let _ = tokio::time::timeout(Duration::from_millis(100), changed).await;
    }
}
