//! stub
use super::model::*;
use super::*;
use crate::command::*;
use async_trait::async_trait;
use sqlx::SqliteConnection;
use std::time::Duration;
pub(super) struct SqliteStore(sqlx::SqlitePool);
impl SqliteStore {
    pub(super) fn new(p: sqlx::SqlitePool) -> Self {
        Self(p)
    }
}
#[async_trait]
impl Store for SqliteStore {
    async fn migrate(&self) -> Result<()> {
        todo!()
    }
    async fn check(&self) -> Result<String> {
        todo!()
    }
    async fn register(
        &self,
        instance: InstanceId,
        name: &str,
        stall: Duration,
    ) -> Result<Vec<Peer>> {
        todo!()
    }
    async fn heartbeat(
        &self,
        instance: InstanceId,
        deadline: Duration,
    ) -> Result<Option<Vec<Peer>>> {
        todo!()
    }
    async fn bury(&self, peer: Peer, stall: Duration) -> Result<bool> {
        todo!()
    }
    async fn closing(&self, instance: InstanceId) -> Result<()> {
        todo!()
    }
    async fn deregister(&self, instance: InstanceId) -> Result<()> {
        todo!()
    }
    async fn claim(&self, instance: InstanceId, token: Token, wants: &[Want]) -> Result<Claim> {
        todo!()
    }
    async fn claim_ids(
        &self,
        instance: InstanceId,
        token: Token,
        types: &[&'static str],
        ids: &[CommandId],
    ) -> Result<Claim> {
        todo!()
    }
    async fn claim_suspect(
        &self,
        instance: InstanceId,
        token: Token,
        known: &[&'static str],
        types: &[&'static str],
    ) -> Result<Claim> {
        todo!()
    }
    async fn finish(
        &self,
        endings: &[&Ending],
        outstanding: &[(Token, usize)],
    ) -> Result<Vec<Ended>> {
        todo!()
    }
    async fn drop_receipts(&self, tokens: &[Token]) -> Result<()> {
        todo!()
    }
    async fn recover(&self, known: &[&'static str], limit: usize) -> Result<Recovered> {
        todo!()
    }
    async fn receipts(&self, instance: InstanceId) -> Result<Vec<Receipt>> {
        todo!()
    }
    async fn held(&self, pairs: &[(CommandId, Token)]) -> Result<Vec<Held>> {
        todo!()
    }
    async fn progress(&self, reports: &[(CommandId, Token, String)]) -> Result<()> {
        todo!()
    }
    async fn sweep(&self, after: CommandId, limit: usize, rules: &RetentionRules) -> Result<Sweep> {
        todo!()
    }
    async fn insert(&self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
        todo!()
    }
    async fn cancel(&self, command_type: &str, which: &model::Which) -> Result<u64> {
        todo!()
    }
    async fn reschedule(
        &self,
        command_type: &str,
        which: &model::Which,
        due: crate::command::Due,
    ) -> Result<u64> {
        todo!()
    }
    async fn list(&self, filter: &Filter) -> Result<Vec<CommandRow>> {
        todo!()
    }
    async fn get(&self, id: CommandId) -> Result<Option<(CommandRow, Vec<FailureRow>)>> {
        todo!()
    }
    async fn retry(&self, id: CommandId) -> Result<Operated> {
        todo!()
    }
    async fn requeue(&self, id: CommandId) -> Result<Operated> {
        todo!()
    }
    async fn kill(&self, id: CommandId, reason: &str, force: bool) -> Result<Killed> {
        todo!()
    }
    async fn dead(&self, limit: usize) -> Result<(u64, Vec<Death>)> {
        todo!()
    }
    async fn census(&self) -> Result<Vec<TypeCount>> {
        todo!()
    }
    async fn pending_types(&self) -> Result<Vec<String>> {
        todo!()
    }
    async fn due_and_running(&self, types: &[&'static str]) -> Result<(u64, u64)> {
        todo!()
    }
    #[cfg(feature = "testing")]
    async fn advance(&self, by: Duration) -> Result<u64> {
        todo!()
    }
}
pub(super) mod insert {
    use super::*;
    pub(in crate::store) async fn insert(
        _c: &mut SqliteConnection,
        _d: &[Draft],
    ) -> Result<Vec<Inserted>> {
        todo!()
    }
    pub(in crate::store) async fn cancel(
        _c: &mut SqliteConnection,
        _t: &str,
        _w: &Which,
    ) -> Result<u64> {
        todo!()
    }
    pub(in crate::store) async fn reschedule(
        _c: &mut SqliteConnection,
        _t: &str,
        _w: &Which,
        _d: Due,
    ) -> Result<u64> {
        todo!()
    }
}
pub(super) mod finish {
    use super::*;
    pub(in crate::store) async fn finish_in(
        _c: &mut SqliteConnection,
        _i: CommandId,
        _t: Token,
        _o: &StoredOutput,
        _d: bool,
        _f: &[Draft],
    ) -> Result<EndedIn> {
        todo!()
    }
}
pub(super) mod migrate {
    use super::*;
    pub(in crate::store) async fn identity(_c: &mut SqliteConnection) -> Result<Option<String>> {
        todo!()
    }
}
