import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { silent } from '../../../../operator/kube/log.ts';
import type { StackRequest } from '../../../../providers/pulumi/request.ts';
import { PulumiRunner } from '../../../../providers/pulumi/runner.ts';

const home = mkdtempSync(join(tmpdir(), 'coppice-turns-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it("the only cluster of a namespace comes second after one of another's ten, in one account or ten", async () => {
  for (const accounts of [1, 10]) {
    const runner = new PulumiRunner({
      home,
      log: silent,
      maxWorkers: 1,
      // Ends each operation a moment after it came in.
      engine: () => new Promise((_, reject) => setImmediate(reject, new Error('no engine'))),
    });
    const ended: string[] = [];
    const ask = (tenant: string, index: number) =>
      runner
        .outputs({
          stack: { technicalID: `${tenant}-${index}`, layer: 'cluster' },
          tenant,
          account: `${index % accounts}`,
          region: 'eu-central-1',
          program: { provider: 'aws', layer: 'cluster' },
          signal: new AbortController().signal,
        } as StackRequest)
        .catch(() => ended.push(tenant));
    await Promise.all([...Array.from({ length: 10 }, (_, index) => ask('big', index)), ask('small', 0)]);
    expect([ended.indexOf('small'), ended.length]).toEqual([1, 11]);
    await runner.close();
  }
});
