import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { StateBackend } from '../../providers/cloud.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { configurationProblem, notYetConfigured } from '../api/errors.ts';
import { LABELS } from '../api/group.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import { SECRETS, type Secret } from '../kube/resources.ts';

/** Key of the passphrase, in Coppice's own Secret and in that of a profile. */
const PASSPHRASE = 'passphrase';
const PASSPHRASE_SECRET = 'coppice-state-passphrase';

export interface StateOptions {
  readonly garden: KubeClient;
  /** Namespace of the operator, in which only administrators read Secrets. */
  readonly namespace: string;
  /** Directory for profiles without a backend; absent: no directory outlives the process. */
  readonly directory: string | undefined;
}

/** Where the Pulumi state of a profile's clusters is stored. Throws CoppiceErrors where that cannot be determined. */
export async function stateBackend(
  options: StateOptions,
  profile: CloudProfile,
  signal?: AbortSignal,
): Promise<StateBackend> {
  const wanted = profile.spec.stateBackend;
  const given = wanted?.secretRef ? await secretOf(options.garden, wanted.secretRef, profile, signal) : {};
  const { [PASSPHRASE]: passphrase, ...env } = given;
  const url = wanted?.url ?? (await ownDirectory(options.directory, profile));
  if (wanted?.secretsProvider) return { url, secretsProvider: wanted.secretsProvider, env };
  return { url, passphrase: passphrase ?? (await ownPassphrase(options, signal)), env };
}

async function ownDirectory(directory: string | undefined, profile: CloudProfile): Promise<string> {
  if (directory === undefined) {
    throw configurationProblem(
      `CloudProfile ${profile.metadata.name} names no stateBackend, and this operator has no persistent directory`,
      'Set spec.stateBackend.url of the profile, for example to s3://bucket, or give the operator a volume and COPPICE_DATA.',
    );
  }
  const path = join(directory, 'pulumi');
  await mkdir(path, { recursive: true, mode: 0o700 });
  return pathToFileURL(path).href;
}

async function secretOf(
  garden: KubeClient,
  { name, namespace }: { name: string; namespace: string },
  profile: CloudProfile,
  signal: AbortSignal | undefined,
): Promise<Record<string, string>> {
  const secret = await garden.getOrUndefined<Secret>(SECRETS, name, namespace, { signal });
  if (!secret) {
    throw notYetConfigured(
      `there is no Secret ${namespace}/${name}, which stateBackend of CloudProfile ${profile.metadata.name} names`,
      'Make it, or name another.',
    );
  }
  return decoded(secret);
}

const decoded = (secret: Secret): Record<string, string> =>
  Object.fromEntries(
    Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
  );

/** Passphrase cached per garden client: deleting the Secret does not affect a running process. */
const KNOWN = new WeakMap<KubeClient, string>();

/**
 * Generated once, and restored by a running process after a deletion: without the passphrase the secrets of the state
 * are lost (the state itself is rebuilt from tags).
 */
async function ownPassphrase(options: StateOptions, signal: AbortSignal | undefined): Promise<string> {
  const { garden } = options;
  const passphrase = await storedPassphrase(options, signal);
  KNOWN.set(garden, passphrase);
  return passphrase;
}

async function storedPassphrase({ garden, namespace }: StateOptions, signal: AbortSignal | undefined): Promise<string> {
  const read = async () => {
    const secret = await garden.getOrUndefined<Secret>(SECRETS, PASSPHRASE_SECRET, namespace, { signal });
    return secret && decoded(secret)[PASSPHRASE];
  };
  const stored = await read();
  if (stored) return stored;
  const made = KNOWN.get(garden) ?? randomBytes(32).toString('base64url');
  try {
    await garden.create<Secret>(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: PASSPHRASE_SECRET, namespace, labels: { [LABELS.managedBy]: 'coppice' } },
        // A changed passphrase would make every state unreadable.
        immutable: true,
        type: 'Opaque',
        stringData: { [PASSPHRASE]: made },
      },
      { signal },
    );
    return made;
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isAlreadyExists)) throw error;
    const theirs = await read();
    if (theirs) return theirs;
    throw notYetConfigured(
      `Secret ${namespace}/${PASSPHRASE_SECRET} has no key ${PASSPHRASE}`,
      'Put the passphrase of the state back into it.',
    );
  }
}
