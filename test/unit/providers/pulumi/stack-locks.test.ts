import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { removeLocks } from '../../../../providers/pulumi/stack-locks.ts';

describe('the locks of a stack that was never created', () => {
  it('are removed with their folder, and locks of other stacks stay', () => {
    const folder = mkdtempSync(join(tmpdir(), 'coppice-locks-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const lockOf = (stack: string) => join(folder, '.pulumi/locks/organization/coppice', stack, 'a.json');
    for (const stack of ['blue', 'green']) {
      mkdirSync(join(lockOf(stack), '..'), { recursive: true });
      writeFileSync(lockOf(stack), '{}');
    }
    removeLocks({ stackName: 'blue', environment: { PULUMI_BACKEND_URL: `file://${folder}?no_tmp_dir=true` } });
    expect([existsSync(lockOf('blue')), existsSync(lockOf('green'))]).toEqual([false, true]);
  });

  it('are named if unreachable, without secrets in the address', () => {
    const backend = { PULUMI_BACKEND_URL: 's3://state/fleet?secret=x' };
    expect(() => removeLocks({ stackName: 'blue', environment: backend })).toThrow(
      expect.objectContaining({
        output: expect.stringMatching(
          /delete what is below \.pulumi\/locks\/organization\/coppice\/blue in s3:\/\/state\/fleet$/,
        ),
      }),
    );
  });
});
