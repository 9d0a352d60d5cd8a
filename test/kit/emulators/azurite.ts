import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { createCA, issue } from '../../../operator/pki/certificates.ts';

/** Azure's Blob Storage as azurite plays it, over TLS by a certificate that all of this process trusts, in a process of its own. */
export interface Azurite {
  /** As Resource Manager calls the account's primary endpoint for blobs. */
  endpoint: string;
  /** Azure's own client, by the key of the account. */
  client: BlobServiceClient;
  close(): Promise<void>;
}

/**
 * Serves one storage account. It takes tokens of Entra ID, and looks at their issuer, audience and lifetime, not at the signature.
 * @param folder what installAzurite found
 */
export async function startAzurite(folder: string, account: string): Promise<Azurite> {
  const ca = await createCA({ commonName: 'CA of azurite', days: 2 });
  const tls = await issue(ca, { commonName: 'azurite', ipAddresses: ['127.0.0.1'], usages: ['server'], days: 2 });
  setDefaultCACertificates([...getCACertificates('default'), ca.cert]);
  const work = await mkdtemp(join(tmpdir(), 'coppice-azurite-'));
  const [cert, key] = [join(work, 'tls.crt'), join(work, 'tls.key')];
  await writeFile(cert, tls.cert);
  await writeFile(key, tls.key, { mode: 0o600 });
  const secret = randomBytes(32).toString('base64');
  const program = join(folder, 'node_modules/azurite/dist/src/blob/main.js');
  // Azure's own client asks by a version of the API that azurite does not know yet; the product's version is one that it knows.
  const flags =
    '--inMemoryPersistence --disableTelemetry --disableProductStyleUrl --skipApiVersionCheck --silent --oauth basic';
  const where = ['--blobPort', '0', '--cert', cert, '--key', key];
  const child = spawn(process.execPath, ['-e', PROGRAM, '--', program, ...flags.split(' '), ...where], {
    env: { PATH: process.env.PATH, AZURITE_ACCOUNTS: `${account}:${secret}` },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const endpoint = `${await addressOf(child.stdout)}/${account}`;
  return {
    endpoint,
    client: new BlobServiceClient(endpoint, new StorageSharedKeyCredential(account, secret)),
    async close() {
      child.stdin.end();
      await ended;
      await rm(work, { recursive: true, force: true });
    },
  };
}

/** Ends when its standard input ends: with the process that started it, however that ends. */
const PROGRAM = `
process.stdin.on('end', () => process.exit(0)).resume();
require(process.argv[1]);
`;

async function addressOf(stdout: NodeJS.ReadableStream): Promise<string> {
  const said: string[] = [];
  for await (const line of createInterface({ input: stdout })) {
    const found = /successfully listens on (https:\S+)/.exec(line);
    if (found) return found[1]!;
    said.push(line);
  }
  throw new Error(`azurite does not start: ${said.join('\n')}`);
}
