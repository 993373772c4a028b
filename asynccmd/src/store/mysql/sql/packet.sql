-- The most bytes that this connection may send as one statement.
select cast(@@max_allowed_packet as signed)
