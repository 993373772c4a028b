//! Sessions in another time zone: times are moments, wherever they are read.

use std::time::Duration;

use asynccmd::{Client, CommandError, Context, Registry, Runtime, Status, command, testing};
use chrono::{DateTime, TimeDelta, Utc};

use crate::harness::{Back, Log, row};
use crate::setting::DAY;

#[command(type = "zones.twice", mode = "async_pool", max_retry = 2, backoff = "fixed(90m)")]
async fn twice(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    if ctx.attempt() == 1 { Err("once more".into()) } else { Ok(()) }
}

#[command(type = "zones.once", mode = "async_pool")]
async fn once(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    Ok(())
}

/// Submitted here and run there, and the other way round: nothing starts early, delays are exact, a time
/// comes back as it was given, and nobody is declared dead.
pub async fn sessions_in_another_time_zone_agree_on_every_moment<B: Back>(back: B) {
    let elsewhere = back.pool_elsewhere().await;
    let registry = || Registry::builder().add::<Twice>().add::<Once>().build();
    for submits_here in [true, false] {
        let log = Log::default();
        let (submits, runs) = if submits_here {
            (back.database(), B::database_of(&elsewhere))
        } else {
            (B::database_of(&elsewhere), back.database())
        };
        let client = Client::new(submits);
        let stall = Duration::from_secs(1);
        let builder = Runtime::builder(runs.clone()).registry(registry()).stall_timeout(stall);
        let runtime = builder.state(log.clone()).start().await.unwrap();
        // Another one beside it, on the other side, with whose heartbeats it has to get on.
        let builder = Runtime::builder(if submits_here {
            back.database()
        } else {
            B::database_of(&elsewhere)
        });
        let builder = builder.registry(Registry::builder().add::<Once>().build());
        let beside = builder.state(log.clone()).stall_timeout(stall).start().await.unwrap();
        let instances = [runtime.instance(), beside.instance()];

        let now = Utc::now();
        let at = DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap();
        let hour = Duration::from_secs(3600);
        let soon = submit_once(&client, "now".into()).await.unwrap().id();
        let past = submit_once(&client, "past".into()).run_at(at - TimeDelta::hours(1)).await;
        let past = past.unwrap().id();
        let future = submit_once(&client, "future".into()).run_at(at + TimeDelta::hours(1)).await;
        let future = future.unwrap().id();
        let delayed = submit_once(&client, "delayed".into()).delay(hour).await.unwrap().id();
        let retried = submit_twice(&client, "retried".into()).await.unwrap().id();
        testing::drain(&runtime).await;
        let mut told = log.texts();
        told.sort_unstable();
        assert_eq!(told, ["now", "past", "retried"], "nothing early, nothing late");

        // Both sides read the same moments, and they are near those of this machine.
        for database in [back.database(), B::database_of(&elsewhere)] {
            let reader = Client::new(database);
            let hours = TimeDelta::hours(1);
            assert_eq!(row(&reader, past).await.next_run_at, at - hours);
            assert_eq!(row(&reader, future).await.next_run_at, at + hours);
            let delayed = row(&reader, delayed).await;
            assert_eq!(delayed.next_run_at - delayed.created_at, hours);
            let retried = row(&reader, retried).await;
            assert_eq!(retried.next_run_at - retried.updated_at, TimeDelta::minutes(90));
            let soon = row(&reader, soon).await;
            for moment in [soon.created_at, soon.updated_at, soon.finished_at.unwrap()] {
                assert!((moment - now).abs() < TimeDelta::minutes(5), "{moment}, and it is {now}");
            }
        }
        testing::advance(runs.clone(), Duration::from_secs(3500)).await;
        testing::drain(&runtime).await;
        assert_eq!(log.entries().len(), 3, "{:?}", log.texts());
        testing::advance(runs.clone(), Duration::from_secs(120)).await;
        testing::drain(&runtime).await;
        assert_eq!(log.entries().len(), 5, "{:?}", log.texts());
        testing::advance(runs.clone(), DAY).await;
        testing::drain(&runtime).await;
        assert_eq!(row(&client, retried).await.status, Status::Success);
        assert_eq!(log.entries().len(), 6);

        // Due after six heartbeats of each: by then, one of half a day ago would have been buried.
        let (begin, wait) = (std::time::Instant::now(), Duration::from_millis(1500));
        submit_once(&client, "heartbeats".into()).delay(wait).await.unwrap();
        log.until(7).await;
        assert!(begin.elapsed() >= wait, "early");
        for instance in instances {
            let beats =
                format!("select count(*) from async_command_instance where id = {instance}");
            assert_eq!(back.number(beats).await, 1, "declared dead");
        }
        assert_eq!([runtime.instance(), beside.instance()], instances);
        beside.shutdown().await;
        runtime.shutdown().await;
    }
    back.assert_receipts_match_rows().await;
}
