import { silent } from '../../kube/log.ts';
import { NODE_TOOLS } from '../seed/node.ts';
import { knownFields } from '../state/fields-of-garden.ts';
import type { StateDirectory } from '../state/state.ts';
import type { ProgressEvent } from '../toolchain/progress.ts';
import { Toolchain } from '../toolchain/toolchain.ts';

const OF_GARDEN = ['etcd', 'kube-apiserver', 'kube-controller-manager'] as const;
const OF_SEED = ['kube-scheduler', ...NODE_TOOLS, 'kubelet', 'kube-proxy', 'pause'] as const;

/**
 * Verifies that this version's daemon can start while another version's still runs: tools are present, and it knows all
 * fields of the garden. Throws the reason; nothing has changed then.
 */
export async function readyToTakeOver(
  directory: StateDirectory,
  onProgress?: (event: ProgressEvent) => void,
): Promise<void> {
  await knownFields(directory);
  const state = await directory.read();
  const toolchain = new Toolchain({ log: silent, ...(onProgress && { onProgress }) });
  try {
    await toolchain.ensure([...OF_GARDEN, ...(state?.seed === 'local' ? OF_SEED : [])]);
  } finally {
    await toolchain.close();
  }
}
