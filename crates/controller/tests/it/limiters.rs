//! The delays of the limiters: ★60 default_rate_limiters_test, WQ-20 to WQ-25, FC-1, FC-3, FC-4.

use std::time::Duration;

use kube_controller::RateLimiter;
use kube_controller::limiter::{
    FastSlow, ItemExponential, MaxOf, MaxWait, TokenBucket, default_controller_limiter, default_item_limiter,
};
use tokio::time::Instant;

use crate::{at_once, ms, pass};

fn delays(limiter: &impl RateLimiter<&'static str>, item: &'static str, count: usize) -> Vec<u128> {
    (0..count).map(|_| limiter.when(&item).as_millis()).collect()
}

// ★60 TestItemExponentialFailureRateLimiter, WQ-20.
#[test]
fn delays_of_an_item_double_up_to_the_longest() {
    let limiter = ItemExponential::new(ms(1), ms(1000));
    assert_eq!(delays(&limiter, "one", 5), [1, 2, 4, 8, 16]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(delays(&limiter, "two", 2), [1, 2]);
    assert_eq!(delays(&limiter, "one", 7), [32, 64, 128, 256, 512, 1000, 1000]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(delays(&limiter, "one", 1), [1]);
    assert_eq!(delays(&limiter, "two", 1), [4]);
}

// ★60 TestItemExponentialFailureRateLimiterOverFlow.
#[test]
fn delays_do_not_overflow() {
    let longest = |base, max| {
        let limiter = ItemExponential::new(base, max);
        let delays: Vec<Duration> = (0..2000).map(|_| limiter.when(&"a")).collect();
        assert!(delays.is_sorted());
        assert_eq!(delays[0], base.min(max));
        delays[1999]
    };
    assert_eq!(longest(ms(1), Duration::from_secs(1000)), Duration::from_secs(1000));
    assert_eq!(longest(Duration::from_nanos(1), Duration::MAX), Duration::MAX);
    assert_eq!(longest(Duration::MAX, Duration::MAX), Duration::MAX);
    assert_eq!(longest(ms(10), ms(1)), ms(1));
    assert_eq!(longest(Duration::ZERO, ms(1)), Duration::ZERO);
    assert_eq!(longest(ms(1), Duration::ZERO), Duration::ZERO);
}

// FC-1, FC-3.
#[test]
fn jitter_makes_delays_longer_and_is_the_same_for_the_same_seed() {
    let some = |seed| {
        let limiter = ItemExponential::new(ms(1000), ms(60_000)).jitter(0.5, seed);
        (0..8).map(|_| limiter.when(&"a")).collect::<Vec<_>>()
    };
    for (attempt, delay) in some(1).into_iter().enumerate() {
        let base = ms(1000 << attempt).min(ms(60_000));
        assert!(base <= delay && delay <= (base * 3 / 2).min(ms(60_000)), "{delay:?} after {attempt}");
    }
    assert_eq!(some(1), some(1));
    assert_ne!(some(1), some(2));
    let endless = ItemExponential::new(Duration::MAX, Duration::MAX).jitter(f64::INFINITY, 1);
    assert_eq!(endless.when(&"a"), Duration::MAX);
}

// WQ-21, FC-4.
#[tokio::test(start_paused = true)]
async fn a_bucket_allows_a_burst_and_then_a_fixed_rate_per_second() {
    let bucket = TokenBucket::new(10.0, 3);
    assert_eq!(delays(&bucket, "a", 5), [0, 0, 0, 100, 200]);
    pass(200).await;
    assert_eq!(delays(&bucket, "b", 1), [100], "what was promised is gone");
    pass(60_000).await;
    assert_eq!(delays(&bucket, "a", 4), [0, 0, 0, 100], "it holds no more than it did at first");
    assert_eq!(RateLimiter::<&str>::num_requeues(&bucket, &"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn any_rate_is_legal() {
    for (qps, burst, expected) in [
        (0.0, 1, [Duration::ZERO, Duration::MAX]),
        (-1.0, 1, [Duration::ZERO, Duration::MAX]),
        (f64::NAN, 1, [Duration::ZERO, Duration::MAX]),
        (1e-300, 0, [Duration::MAX, Duration::MAX]),
        (f64::INFINITY, 0, [Duration::ZERO, Duration::ZERO]),
        (2.0, 0, [ms(500), ms(1000)]),
    ] {
        let bucket = TokenBucket::new(qps, burst);
        assert_eq!([(); 2].map(|()| bucket.when(&"a")), expected, "{qps} {burst}");
        pass(10).await;
        bucket.try_take();
    }
}

// FC-4.
#[tokio::test(start_paused = true)]
async fn take_waits_for_a_token_and_returns_it_if_dropped() {
    let bucket = TokenBucket::new(1.0, 1);
    assert!(bucket.try_take());
    assert!(!bucket.try_take());
    let mut given_up = Box::pin(bucket.take());
    assert!(at_once(&mut given_up).await.is_none());
    drop(given_up);
    let start = Instant::now();
    bucket.take().await;
    assert_eq!(start.elapsed(), ms(1000));
    assert!(!bucket.try_take());
}

// ★60 TestItemFastSlowRateLimiter, WQ-22.
#[test]
fn the_first_attempts_are_fast_and_the_rest_slow() {
    let limiter = FastSlow::new(ms(5), ms(10_000), 3);
    assert_eq!(delays(&limiter, "one", 5), [5, 5, 5, 10_000, 10_000]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(delays(&limiter, "two", 1), [5]);
    limiter.forget(&"one");
    assert_eq!(delays(&limiter, "one", 1), [5]);
}

// ★60 TestMaxOfRateLimiter, WQ-23.
#[test]
fn max_of_calls_all_limiters_and_returns_the_longest_delay() {
    let limiter = MaxOf::new(FastSlow::new(ms(5), ms(3000), 3)).and(ItemExponential::new(ms(1), ms(1000)));
    assert_eq!(delays(&limiter, "one", 5), [5, 5, 5, 3000, 3000]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(delays(&limiter, "two", 2), [5, 5]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(delays(&limiter, "one", 1), [5]);
}

// ★60 TestWithMaxWaitRateLimiter, WQ-24.
#[test]
fn max_wait_limits_the_delays_of_another_limiter() {
    let limiter = MaxWait::new(ItemExponential::new(ms(100), ms(1_000_000)), ms(500));
    assert_eq!(delays(&limiter, "one", 5), [100, 200, 400, 500, 500]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
}

// WQ-25.
#[tokio::test(start_paused = true)]
async fn the_default_limiters_have_the_delays_of_client_go() {
    let limiter = default_controller_limiter();
    assert_eq!(delays(&limiter, "a", 4), [5, 10, 20, 40]);
    delays(&limiter, "a", 96);
    assert_eq!(limiter.when(&"a"), Duration::from_secs(1000));
    assert_eq!(delays(&limiter, "b", 2), [200, 300], "a hundred at once, then ten a second");
    assert_eq!(delays(&default_item_limiter(), "a", 21)[19..], [524_288, 1_000_000]);
}

// B-32.
#[tokio::test(start_paused = true)]
async fn an_item_that_was_not_tried_for_hours_loses_its_count() {
    let limiter = default_item_limiter();
    delays(&limiter, "a", 5);
    pass(3600 * 1000).await;
    assert_eq!(limiter.num_requeues(&"a"), 5);
    pass(2 * 3600 * 1000).await;
    assert_eq!(limiter.num_requeues(&"a"), 0);
    assert_eq!(delays(&limiter, "a", 1), [1]);
}
