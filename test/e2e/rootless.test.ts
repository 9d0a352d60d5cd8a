import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { KubeClient } from '../../operator/kube/client.ts';
import { NODES, type Node } from '../../operator/kube/resources.ts';
import { type OrdinaryUser, ordinaryUser, whyNoRootless } from '../kit/ordinary-user.ts';

const whyNot = await whyNoRootless();

describe.skipIf(whyNot !== undefined)(
  `a garden of an unprivileged user${whyNot ? ` (skipped: ${whyNot})` : ''}`,
  () => {
    let user: OrdinaryUser;
    const ok = async (...args: string[]) => {
      const { code, stdout, stderr } = await user.coppice(args, { timeoutMs: 300_000 });
      expect(code, `${stdout}${stderr}`.slice(-3000)).toBe(0);
      return { stdout, stderr };
    };

    beforeAll(async () => {
      user = await ordinaryUser(inject('tools') || undefined);
    });
    afterAll(async () => {
      await user.coppice(['down'], { timeoutMs: 120_000 });
      await user.remove();
    });

    it('starts with a working cluster, and reports what it lacks', async () => {
      const { stdout, stderr } = await ok('start', '--detach', '--timeout', '280s');
      expect(stderr).toContain('Control planes are real here, but nodes are simulated: nodes need root');
      expect(stdout).toContain('demo');
      const kubeconfig = (await ok('kubeconfig', 'demo')).stdout;
      expect(kubeconfig).toMatch(/server: https:\/\/127\.0\.0\.1:3\d{4}\n/);
      const cluster = KubeClient.fromKubeconfig(kubeconfig);
      expect((await cluster.list<Node>(NODES)).items).toHaveLength(2);
      await cluster.close();
    });

    it('deletes the cluster, and itself without a trace', async () => {
      await ok('delete', 'demo', '--wait');
      await ok('down');
      await expect(access(join(user.home, '.coppice', 'garden'))).rejects.toThrow('ENOENT');
      await expect.poll(() => user.processes(), { timeout: 60_000 }).toEqual([]);
      expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(user.home);
    });
  },
);
