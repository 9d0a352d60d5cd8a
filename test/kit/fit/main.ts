import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { JudgedCase } from './case.ts';
import { CASES_FILE, type RecordedCases, recordedCases } from './cases.ts';
import { casesOf, FAMILIES } from './generate.ts';
import { Recorder } from './recorder.ts';
import { startScheduler } from './scheduler.ts';

/**
 * Records what kube-scheduler says of the cases: `npx node test/kit/fit/main.ts record [families] [count]`. With `check` it asks again
 * about all that is recorded, and prints what it now says otherwise. Some minutes on a machine that does nothing else.
 */
const [command = 'record', only, most] = process.argv.slice(2);
const families = only ? only.split(',') : Object.keys(FAMILIES);
const server = await startScheduler();
try {
  const recorder = new Recorder(server.client);
  await recorder.prepare();
  const before = existsSync(CASES_FILE) ? recordedCases() : undefined;
  const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
  if (command === 'check') {
    for (const { verdict, ...of } of before?.cases ?? []) {
      const now = await recorder.verdict(of);
      if (now !== verdict) say(`${of.name}: recorded ${JSON.stringify(verdict)}, now ${JSON.stringify(now)}`);
    }
    say('checked');
  } else {
    const { gitVersion } = await server.client.serverVersion();
    let cases = before?.cases.filter(({ name }) => !families.includes(name.split('-')[0]!)) ?? [];
    for (const family of families) {
      const recorded: JudgedCase[] = [];
      let refused = 0;
      for (const of of casesOf(family)) {
        if (recorded.length === Number(most ?? FAMILIES[family]!.count)) break;
        const verdict = await recorder.verdict(of);
        if (verdict === undefined) refused++;
        else recorded.push({ ...of, verdict });
      }
      say(`${family}: ${recorded.length} cases, ${refused} refused by the API server`);
      cases = [...cases, ...recorded];
      const head: Omit<RecordedCases, 'cases'> = { scheduler: gitVersion, featureGates: 'defaults' };
      await writeFile(CASES_FILE, [head, ...cases].map((one) => `${JSON.stringify(one)}\n`).join(''));
    }
  }
} finally {
  await server.stop();
}
