import { errorText } from '../api/errors.ts';
import type { KubeClient } from './client.ts';
import { isNotFound } from './errors.ts';
import { SECRETS } from './resources.ts';

const AT_ONCE = 8;

/**
 * Has the API server write each Secret of a cluster to etcd anew, by the key that it writes with now. The Secrets stay as they are: it
 * writes what nobody changed only where it is stored otherwise than it would be now. Resolves to their number.
 * @throws the first refusal, with the Secret's name
 */
export async function rewriteSecrets(
  client: Pick<KubeClient, 'listPages' | 'mergePatch'>,
  signal?: AbortSignal,
): Promise<number> {
  let names: { name: string; namespace: string | undefined }[] = [];
  await client.listPages(
    SECRETS,
    { signal },
    {
      begin: () => {
        names = [];
      },
      each: ({ metadata: { name, namespace } }) => names.push({ name, namespace }),
    },
  );
  const left = [...names];
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const { name, namespace } = next;
      try {
        await client.mergePatch(SECRETS, name, namespace, {}, { signal });
      } catch (error) {
        if (isNotFound(error)) continue;
        throw new Error(`Secret ${namespace}/${name} could not be written again: ${errorText(error)}`, {
          cause: error,
        });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return names.length;
}
