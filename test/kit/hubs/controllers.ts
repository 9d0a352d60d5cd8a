import type { TestApiserver } from '../apiserver.ts';
import { testTools } from '../tools.ts';
import type { Processes } from './processes.ts';

/**
 * Runs a few controllers of kube-controller-manager for an API server that has none. Without `namespace` no namespace ever ends there, and in
 * one that hub or operator have deleted nothing can be made any more.
 * @param name of its log
 */
export async function runControllers(
  processes: Processes,
  { kubeconfig }: TestApiserver,
  name: string,
  controllers: readonly string[],
  flags: readonly string[] = [],
): Promise<void> {
  const { 'kube-controller-manager': binary } = await testTools('kube-controller-manager');
  processes.run(binary, `kcm-${name}`, [
    `--kubeconfig=${await processes.file(`kcm-${name}.kubeconfig`, kubeconfig)}`,
    `--controllers=${controllers.join(',')}`,
    '--leader-elect=false',
    '--secure-port=0',
    ...flags,
  ]);
}
