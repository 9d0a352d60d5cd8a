/** Stands for an operator that is killed: a process of its own that applies what it is told over IPC. */
import { fileURLToPath } from 'node:url';
import { silent } from '../../../operator/kube/log.ts';
import type { StackRequest } from '../../../providers/pulumi/request.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';

export interface OperatorOrder {
  engine: string;
  home: string;
  /** Folder of the plugin for aws. */
  plugins: string;
  request: Omit<StackRequest, 'signal' | 'findExisting' | 'classify'>;
}

process.once('message', ({ engine, home, plugins, request }: OperatorOrder) => {
  const runner = new PulumiRunner({
    engine: async () => engine,
    home,
    log: silent,
    acquirePlugins: false,
    plugins: { aws: plugins },
    programs: { aws: fileURLToPath(new URL('./programs.ts', import.meta.url)) },
  });
  void runner.apply({ ...request, signal: new AbortController().signal, findExisting: async () => undefined });
});
