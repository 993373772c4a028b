//! Processes of a test's own: started, listened to, signalled, and never left behind.
//!
//! A test waits for what a process says or for a state of the database, each with a deadline, never
//! for time to pass.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

/// The longest wait for anything, unless a case says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running process. Killed when it is dropped, by the test's end as by its panic.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdin: ChildStdin,
    out: Said,
    err: Said,
}

/// The lines of a stream so far.
#[derive(Debug, Clone)]
struct Said {
    lines: Arc<Mutex<Vec<String>>>,
    /// How many there are; closed at the stream's end.
    count: watch::Receiver<usize>,
}

impl Said {
    fn listen(stream: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let (sender, count) = watch::channel(0);
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let said = Self { lines: Arc::clone(&lines), count };
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream).lines();
            while let Ok(Some(line)) = stream.next_line().await {
                let mut lines = lines.lock().unwrap();
                lines.push(line);
                sender.send_replace(lines.len());
            }
        });
        said
    }

    fn so_far(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Process {
    /// Starts a process whose `name` is for the messages of failed tests.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(name: impl Into<String>, mut command: Command) -> Self {
        let name = name.into();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let stdin = child.stdin.take().unwrap();
        let out = Said::listen(child.stdout.take().unwrap());
        let err = Said::listen(child.stderr.take().unwrap());
        Self { name, child, stdin, out, err }
    }

    /// Its process id; none once its end was awaited.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// What it has written to its standard output.
    pub fn lines(&self) -> Vec<String> {
        self.out.so_far()
    }

    /// What it has written to its standard error.
    pub fn errors(&self) -> Vec<String> {
        self.err.so_far()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id as i32));
        let sent = kill_process(pid.unwrap_or_else(|| self.give_up("has ended")), signal);
        sent.unwrap_or_else(|error| self.give_up(&format!("took no {signal:?}: {error}")));
    }

    /// Writes a line to its standard input.
    ///
    /// # Panics
    /// If it does not take it.
    pub async fn say(&mut self, line: &str) {
        if let Err(error) = self.stdin.write_all(format!("{line}\n").as_bytes()).await {
            self.give_up(&format!("did not take {line:?}: {error}"));
        }
    }

    /// Waits until a line that it has written begins with these words, and returns the rest of it.
    ///
    /// # Panics
    /// If its output ends without, or after [`PATIENCE`].
    pub async fn says(&self, words: &str) -> String {
        self.says_times(words, 1).await.remove(0)
    }

    /// The same for `times` such lines.
    ///
    /// # Panics
    /// As [`says`](Self::says).
    pub async fn says_times(&self, words: &str, times: usize) -> Vec<String> {
        let mut count = self.out.count.clone();
        let reached = async {
            loop {
                let _ = count.borrow_and_update();
                let lines = told(&self.lines(), words);
                if lines.len() >= times {
                    return Some(lines);
                }
                if count.changed().await.is_err() {
                    // The last lines may have come with the end.
                    return Some(told(&self.lines(), words)).filter(|lines| lines.len() >= times);
                }
            }
        };
        let not = match tokio::time::timeout(PATIENCE, reached).await {
            Ok(Some(lines)) => return lines,
            Ok(None) => "ended without",
            Err(_) => "went on too long without",
        };
        self.give_up(&format!("{not} saying {words:?} {times} times"))
    }

    /// Writes a line to it, and waits for a line that begins with these words and was not there before.
    /// Returns the rest of it.
    ///
    /// # Panics
    /// As [`say`](Self::say) and [`says`](Self::says).
    pub async fn ask(&mut self, line: &str, words: &str) -> String {
        let before = told(&self.lines(), words).len();
        self.say(line).await;
        self.says_times(words, before + 1).await.swap_remove(before)
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// After `within`.
    pub async fn ends(&mut self, within: Duration) -> ExitStatus {
        match tokio::time::timeout(within, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => self.give_up(&format!("has not ended within {within:?}")),
        }
    }

    /// Kills it by SIGKILL, and returns when it is gone.
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.ends(PATIENCE).await;
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    fn give_up(&self, why: &str) -> ! {
        let tail = |lines: Vec<String>| lines[lines.len().saturating_sub(60)..].join("\n    ");
        panic!(
            "{} {why}; it said\n    {}\nand to its standard error\n    {}",
            self.name,
            tail(self.lines()),
            tail(self.errors())
        );
    }
}

/// The rest of each line that begins with these words.
fn told(lines: &[String], words: &str) -> Vec<String> {
    let rest = lines.iter().filter_map(|line| line.strip_prefix(words));
    let whole = rest.filter(|rest| rest.is_empty() || rest.starts_with(' '));
    whole.map(|rest| rest.trim_start().to_owned()).collect()
}

/// Asks again and again until the answer is `wanted`.
///
/// # Panics
/// After `within`, with the last answer.
pub async fn until<T: PartialEq + std::fmt::Debug>(
    what: &str,
    wanted: T,
    within: Duration,
    mut ask: impl AsyncFnMut() -> T,
) {
    let begin = Instant::now();
    loop {
        let answer = ask().await;
        if answer == wanted {
            return;
        }
        assert!(
            begin.elapsed() < within,
            "{what}: after {within:?} still {answer:?}, not {wanted:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
