// Calls tollgate from Node.js: the functions of tollgate.h, whose pointers are addresses in the module's memory.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";

const { instance } = await WebAssembly.instantiate(await readFile(process.argv[2]));
const tollgate = instance.exports;
const memory = () => new DataView(tollgate.memory.buffer);
const [OK, INSUFFICIENT, UNINITIALIZED, ZERO_RATE] = [0, 1, 11, 21];
const SECOND = 1_000_000_000n;

// Storage of ours begins where the module's ends.
const bucket = (tollgate.__heap_base.value + 15) & ~15;
const quota = bucket + 16;
const wait = quota + 64;
const take = (now, n, wait = 0) => tollgate.tollgate_try_acquire(bucket, quota, now, n, wait);

test("what was not initialised, or can't be, is refused", () => {
    assert.equal(take(0n, 1), UNINITIALIZED);
    assert.equal(tollgate.tollgate_quota_init(quota, 0, SECOND, 2), ZERO_RATE);
});

test("a second, by a microsecond at a time: three tokens, each when it is due", () => {
    assert.equal(tollgate.tollgate_quota_init(quota, 3, SECOND, 2), OK);
    assert.equal(tollgate.tollgate_bucket_init(bucket, quota), OK);
    assert.equal(take(0n, 2, wait), OK);
    assert.equal(take(0n, 1, wait), INSUFFICIENT);
    assert.equal(memory().getBigUint64(wait, true), 333_334n);
    const granted = [];
    for (let now = 0n; now <= 1_000_000n; now++) {
        if (take(now, 1) === OK) {
            granted.push(now);
        }
    }
    assert.deepEqual(granted, [333_334n, 666_667n, 1_000_000n]);
});

test("texts", () => {
    const text = new Uint8Array(tollgate.memory.buffer, tollgate.tollgate_strerror(INSUFFICIENT));
    assert.equal(new TextDecoder().decode(text.subarray(0, text.indexOf(0))), "not enough tokens; wait, then try again");
});
