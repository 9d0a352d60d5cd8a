import { errorText } from '../api/errors.ts';
import type { KubeClient } from './client.ts';
import { isNotFound } from './errors.ts';
import { SECRETS } from './resources.ts';

const AT_ONCE = 8;

/**
 * Makes the API server write each Secret to etcd again, encrypted with the current key. An empty patch does that: the
 * API server skips unchanged objects only when they are stored with the current key. Resolves with the number of
 * Secrets.
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
