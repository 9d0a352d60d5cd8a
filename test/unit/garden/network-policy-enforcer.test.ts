import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { NetworkPolicyEnforcer } from '../../../operator/garden/network-policies/enforcer.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

let folder: string;
let server: SmallApiServer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-enforcer-'));
  server = await SmallApiServer.start('seed');
});
afterEach(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

const program = (name: string, script: string) =>
  writeFile(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
const called = async () => (await readFile(join(folder, 'called'), 'utf8').catch(() => '')).trim().split('\n');

it('the policy enforcer writes rules once on a kernel without IPv6, without errors', async () => {
  await program('iptables', `echo "iptables $*" >>"$(dirname "$0")/called"`);
  await program('iptables-restore', `cat >/dev/null; echo restore >>"$(dirname "$0")/called"`);
  await program('ip6tables', 'echo "Address family not supported by protocol" >&2; exit 3');
  const client = KubeClient.fromKubeconfig(server.kubeconfig);
  const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
  const ranges = chooseRanges('0', [])!;
  const enforcer = new NetworkPolicyEnforcer(client, { ranges, enter: [], programs: folder, hasIPv6: false, log });
  enforcer.start();
  try {
    await expect.poll(async () => (await called()).filter((line) => line.includes(' -I '))).toHaveLength(2);
  } finally {
    await enforcer.stop();
    await client.close();
  }
  expect((await called()).filter((line) => line === 'restore')).toHaveLength(1);
  expect(log.warn).not.toHaveBeenCalled();
});
