//! Counts the statements that the driver sends: it writes a trace of each.
//!
//! `begin`, `commit` and `rollback` are not among them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, span};

static COUNTING: AtomicBool = AtomicBool::new(false);
static SENT: AtomicU64 = AtomicU64::new(0);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// Counts from now until [`stop`]. While nobody counts, traces cost nothing.
pub(crate) fn start() {
    INSTALLED.get_or_init(|| {
        tracing::subscriber::set_global_default(Counter).expect("the bench installs no other one");
    });
    SENT.store(0, Ordering::Release);
    switch(true);
}

/// How many there were since [`start`].
pub(crate) fn so_far() -> u64 {
    SENT.load(Ordering::Acquire)
}

pub(crate) fn stop() -> u64 {
    switch(false);
    so_far()
}

fn switch(on: bool) {
    COUNTING.store(on, Ordering::Release);
    tracing::callsite::rebuild_interest_cache();
}

struct Counter;

impl Counter {
    fn wants(metadata: &Metadata<'_>) -> bool {
        COUNTING.load(Ordering::Acquire) && metadata.target() == "sqlx::query"
    }
}

impl Subscriber for Counter {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        let counting = COUNTING.load(Ordering::Acquire);
        Some(if counting {
            tracing::Level::DEBUG.into()
        } else {
            tracing::level_filters::LevelFilter::OFF
        })
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Self::wants(metadata)
    }

    fn event(&self, _: &Event<'_>) {
        SENT.fetch_add(1, Ordering::AcqRel);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        // Spans are not wanted, so that this is for none of them.
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
