import { beforeEach } from 'vitest';

/** Unix seconds from which on no test is begun; absent: there is no hurry. */
const end = Number(process.env.COPPICE_TESTS_END || Number.POSITIVE_INFINITY);

/** A run that is cut off in the middle tells nothing; one that skips what it has no time for tells the rest. */
beforeEach(({ skip }) => skip(Date.now() / 1000 > end, 'the time for this run is up (COPPICE_TESTS_END)'));
