use std::task::{Context, Poll, Waker};

use super::*;

const POOL: usize = 0;
const TYPE: usize = 1;

/// What `who` may claim of the pool of this capacity now.
fn free(rooms: &Arc<Rooms>, who: usize, capacity: usize) -> usize {
    rooms.plan(who).ask(POOL, capacity).free
}

fn reserve(rooms: &Arc<Rooms>, who: usize, count: usize) -> Reservation {
    rooms.plan(who).reserve([(POOL, count)])
}

/// Whether the scheduler was told since this was last asked.
fn told(rooms: &Rooms, who: usize) -> bool {
    let woken = std::pin::pin!(rooms.inbox(who).woken());
    woken.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

#[test]
fn one_database_has_all_and_a_reservation_is_no_others_room() {
    let rooms = Rooms::new(1, 2);
    assert_eq!(free(&rooms, 0, 4), 4);
    let mut claim = reserve(&rooms, 0, 4);
    assert_eq!(free(&rooms, 1, 4), 0, "reserved, and nothing has come yet");
    let place = claim.place(POOL, None);
    drop(claim);
    assert_eq!(free(&rooms, 1, 4), 2, "an equal part of what is free");
    rooms.withdraw(0);
    assert_eq!(free(&rooms, 1, 4), 3);
    drop(place);
    assert_eq!(free(&rooms, 1, 4), 4);
}

#[test]
fn what_a_claim_gives_back_wakes_whoever_asks_and_never_itself() {
    let rooms = Rooms::new(1, 3);
    let claim = reserve(&rooms, 0, 4);
    assert_eq!((free(&rooms, 0, 4), free(&rooms, 1, 4)), (0, 0));
    drop(claim);
    assert_eq!([0, 1, 2].map(|who| told(&rooms, who)), [false, true, false]);
    let place = reserve(&rooms, 0, 1).place(POOL, None);
    assert_eq!([0, 1].map(|who| told(&rooms, who)), [false, true], "reserved no longer");
    drop(place);
    assert!(told(&rooms, 0) && told(&rooms, 1), "the end of a row is news for its own too");
    assert_eq!(free(&rooms, 0, 4), 2);
    rooms.withdraw(0);
    assert_eq!([0, 1].map(|who| told(&rooms, who)), [false, true], "its part has grown");
    rooms.withdraw(0);
    assert!(!told(&rooms, 1), "nothing has changed");
}

#[test]
fn what_does_not_divide_goes_to_whoever_was_served_the_longest_ago() {
    let rooms = Rooms::new(1, 3);
    let mut served = Vec::new();
    let mut places = Vec::new();
    for _ in 0..6 {
        // All of them ask before the first one is served.
        let able: Vec<_> = [2, 1, 0].into_iter().filter(|who| free(&rooms, *who, 1) > 0).collect();
        let who = able[able.len() - 1];
        served.push(who);
        places = vec![reserve(&rooms, who, 1).place(POOL, None)];
        for other in 0..3 {
            assert_eq!(free(&rooms, other, 1), 0, "of {places:?}");
        }
        places.clear();
    }
    assert_eq!(served[..3], served[3..], "in turn");
    assert_eq!(served.iter().filter(|who| **who == served[0]).count(), 2, "{served:?}");
    drop(places);
}

#[test]
fn a_database_never_has_more_than_its_part_while_another_asks() {
    let rooms = Rooms::new(1, 2);
    let mut claim = reserve(&rooms, 0, 4);
    let mut places: Vec<_> = (0..4).map(|_| claim.place(POOL, None)).collect();
    drop(claim);
    assert_eq!(free(&rooms, 1, 4), 0);
    places.pop();
    assert_eq!(free(&rooms, 0, 4), 0, "it has three of four, the other one asks");
    assert_eq!(free(&rooms, 1, 4), 1);
}

#[test]
fn what_gets_no_answer_bounds_its_own_database_only() {
    let rooms = Rooms::new(2, 2);
    let mut claim = rooms.plan(0).reserve([(POOL, 2), (TYPE, 2)]);
    assert_eq!(free(&rooms, 1, 2), 0);
    claim.lend();
    rooms.withdraw(0);
    assert!(told(&rooms, 1));
    assert_eq!(rooms.plan(1).reserved(POOL), 0);
    assert_eq!((free(&rooms, 0, 2), free(&rooms, 1, 2)), (0, 2));
    let taken = reserve(&rooms, 1, 1);
    let [mut fits, mut late] = [0; 2].map(|_| claim.place(POOL, Some(TYPE)));
    drop(claim);
    assert!(fits.regain([2, 2]), "one of two is free");
    assert!(!late.regain([2, 2]), "and now none");
    assert_eq!((free(&rooms, 0, 2), free(&rooms, 1, 2)), (0, 0));
    drop(late);
    drop(taken);
    assert_eq!(free(&rooms, 1, 2), 1);
    fits.lend();
    fits.lend();
    rooms.withdraw(0);
    assert_eq!(free(&rooms, 1, 2), 2);
    drop(fits);
    rooms.withdraw(1);
    assert_eq!(free(&rooms, 0, 2), 2, "all is given back");
}

#[test]
fn one_database_alone_lends_nothing() {
    let rooms = Rooms::new(1, 1);
    let mut claim = reserve(&rooms, 0, 1);
    claim.lend();
    assert!(!claim.is_lent());
    let place = claim.place(POOL, None);
    drop(claim);
    place.lend();
    assert_eq!(free(&rooms, 0, 2), 1);
    assert!(!told(&rooms, 0));
    drop(place);
    assert!(told(&rooms, 0));
    assert_eq!(free(&rooms, 0, 2), 2);
}
