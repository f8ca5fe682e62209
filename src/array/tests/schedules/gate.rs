//! The gate before the decoders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::check;
use crate::array::decode_gate::DecodeGate;
use crate::sync::thread;

#[test]
fn the_gate_keeps_its_budget_admits_one_always_and_forgets_nobody() {
    const BUDGET: usize = 100;
    check(|| {
        let (gate, decoders, bytes) = (Arc::new(DecodeGate::new(2, BUDGET)), Arc::default(), Arc::default());
        let threads: Vec<_> = [30, 70, 1000, 80]
            .into_iter()
            .map(|needed: usize| {
                let gate = Arc::clone(&gate);
                let (decoders, bytes): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
                    (Arc::clone(&decoders), Arc::clone(&bytes));
                thread::spawn(move || {
                    gate.admit(needed, || {
                        let running = decoders.fetch_add(1, Ordering::SeqCst) + 1;
                        let total = bytes.fetch_add(needed, Ordering::SeqCst) + needed;
                        assert!(running <= 2, "{running} decoders");
                        assert!(total <= BUDGET || running == 1, "{running} decoders need {total} bytes");
                        thread::yield_now();
                        decoders.fetch_sub(1, Ordering::SeqCst);
                        bytes.fetch_sub(needed, Ordering::SeqCst);
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(gate.admitted(), (0, 0));
    });
}
