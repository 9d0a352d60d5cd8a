import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { headlineText } from '../../../operator/cli/commands/status.ts';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../operator/cli/commands.ts';
import { Options } from '../../../operator/cli/context.ts';
import { UsageError } from '../../../operator/cli/errors.ts';
import { egressOf } from '../../../operator/cli/garden.ts';
import { parse } from '../../../operator/cli/parse.ts';
import { readPolicy, writePolicy } from '../../../operator/garden/egress/policy.ts';

const said = (line: string) => egressOf(new Options(parse(line.split(' '), COMMANDS, GLOBAL_OPTIONS).options));

it('up and start set egress options, and keep those that are not given', () => {
  for (const command of ['up', 'start']) {
    expect(said(`${command} --detach`)).toBeUndefined();
    expect(said(`${command} --no-egress`)).toBe('none');
    expect(said(`${command} --egress public`)).toBe('public');
    expect(said(`${command} --no-egress --egress none`)).toBe('none');
    expect(() => said(`${command} --no-egress --egress all`)).toThrow(UsageError);
    expect(() => said(`${command} --egress some`)).toThrow(UsageError);
  }
});

it('the egress policy is kept until it is set again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'coppice-egress-'));
  const file = join(folder, 'egress.json');
  expect(await readPolicy(file)).toBe('all');
  await writePolicy(file, 'none');
  expect(await readPolicy(file)).toBe('none');
  await writePolicy(file, 'all');
  expect(await readPolicy(file)).toBe('all');
  await rm(folder, { recursive: true });
});

it('status shows what pods can reach, and why a promised way does not work', () => {
  const garden = { running: true, phase: 'ready' as const, components: [] };
  const lines = headlineText({ ...garden, egress: { policy: 'all', problem: 'there is no /dev/net/tun' } }, 'coppice');
  expect(lines).toContain('Pods reach nothing outside the garden: there is no /dev/net/tun');
  expect(headlineText({ ...garden, egress: { policy: 'public' } }, 'coppice')).toHaveLength(2);
  expect(headlineText(garden, 'coppice')).toHaveLength(1);
});
