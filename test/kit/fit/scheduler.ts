import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startApiserver, type TestApiserver } from '../apiserver.ts';
import { testTools } from '../tools.ts';

export interface SchedulerServer extends TestApiserver {
  /** Ends the scheduler, then the API server. */
  stop(): Promise<void>;
}

/** An API server that leaves objects as they were written, and a kube-scheduler that says of a pod whether it fits and moves nothing for it. */
export async function startScheduler(): Promise<SchedulerServer> {
  const { 'kube-scheduler': binary } = await testTools('kube-scheduler');
  const server = await startApiserver({
    flags: [
      // They wait for controllers that are not there, or change what a case says.
      '--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition,DefaultTolerationSeconds,RuntimeClass,DefaultStorageClass',
    ],
  });
  let scheduler: ChildProcess | undefined;
  const stop = async () => {
    if (scheduler && scheduler.exitCode === null && scheduler.signalCode === null) {
      const ended = once(scheduler, 'exit');
      scheduler.kill('SIGKILL');
      await ended;
    }
    await server.stop();
  };
  try {
    const file = async (name: string, text: string) => {
      await writeFile(join(server.directory, name), text);
      return join(server.directory, name);
    };
    const config = {
      apiVersion: 'kubescheduler.config.k8s.io/v1',
      kind: 'KubeSchedulerConfiguration',
      leaderElection: { leaderElect: false },
      clientConnection: { kubeconfig: await file('scheduler.kubeconfig', server.kubeconfig), qps: 5000, burst: 5000 },
      profiles: [
        {
          schedulerName: 'default-scheduler',
          plugins: { postFilter: { disabled: [{ name: '*' }] } },
          // A claim that would have to wait for its volume has been found a node, which is all that is asked here.
          pluginConfig: [{ name: 'VolumeBinding', args: { bindTimeoutSeconds: 0 } }],
        },
      ],
    };
    const args = [`--config=${await file('scheduler.json', JSON.stringify(config))}`, '--secure-port=0'];
    const log = createWriteStream(join(server.directory, 'kube-scheduler.log'));
    scheduler = spawn('setpriv', ['--pdeathsig=KILL', binary, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    scheduler.stdout?.pipe(log);
    scheduler.stderr?.pipe(log);
    return { ...server, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
