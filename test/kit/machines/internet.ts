import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Projects send who asks for a release elsewhere for its bytes, as GitHub and dl.k8s.io do. */
const SENT_ON: Readonly<Record<string, string>> = {
  'github.com': 'release-assets.githubusercontent.com',
  'dl.k8s.io': 'cdn.dl.k8s.io',
};
const REGISTRIES = ['registry.k8s.io', 'coppice.test'];

/** Every name of the internet that there is. */
export const NAMES: readonly string[] = [...Object.entries(SENT_ON).flat(), ...REGISTRIES];

/** What projects have published: files by path, the same at every host of releases; the texts are lists of checksums. */
export type Releases = Readonly<Record<string, { file: string } | { text: string }>>;

/** The part of the internet that a new node needs: releases and their checksums, and registries of images, which `mirror` has. */
export function internet(tls: { cert: string; key: string }, releases: Releases, mirror: string): Server {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const host = request.headers.host?.split(':')[0] ?? '';
    const path = request.url ?? '/';
    const elsewhere = SENT_ON[host];
    if (elsewhere !== undefined) return void response.writeHead(302, { location: `https://${elsewhere}${path}` }).end();
    if (REGISTRIES.includes(host))
      return pass(request, response, `${mirror}${path}${path.includes('?') ? '&' : '?'}ns=${host}`);
    const found = releases[path];
    if (!found) return void response.writeHead(404).end(`${host} has no ${path}\n`);
    if ('text' in found) return void response.end(found.text);
    const { size } = await stat(found.file);
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size });
    const content = createReadStream(found.file, { highWaterMark: 1 << 20 });
    await pipeline(content, response).catch((error: Error) => {
      // Who has all that was promised may hang up before we do.
      if (content.bytesRead < size) throw error;
    });
  }

  return createServer(tls, (request, response) => {
    answer(request, response).catch((error: Error) => {
      console.error(`${request.url}: ${error.message}`);
      response.destroy();
    });
  });
}

function pass(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const further = httpRequest(url, { method: request.method ?? 'GET' }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response).then(resolve, reject);
    });
    further.on('error', reject);
    further.end();
  });
}

/** A list of checksums as `sha256sum` prints it, and one that is the sum alone as dl.k8s.io has them. */
export const sumOf = (sum: string, file: string): string => `${sum}  ${basename(file)}\n`;
export const readJSON = async <T>(file: string): Promise<T> => JSON.parse(await readFile(file, 'utf8')) as T;
