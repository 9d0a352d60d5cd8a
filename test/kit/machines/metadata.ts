import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { LaunchedInstance } from '../cloud/index.ts';

export interface MetadataRequest {
  method: string;
  url: URL;
  headers: IncomingHttpHeaders;
}

export interface MetadataAnswer {
  status: number;
  body: string | Buffer;
  /** Besides a content type of plain text. */
  headers?: Record<string, string>;
}

/** What a cloud tells a machine of itself. */
export type Metadata = (asked: MetadataRequest, instance: LaunchedInstance) => MetadataAnswer;

/** A cloud's metadata service. Who asks is known by the address. */
export function metadataService(tell: Metadata, instances: () => Promise<readonly LaunchedInstance[]>): Server {
  return createServer((request, response) => {
    const answer = async (): Promise<MetadataAnswer> => {
      const asking = request.socket.remoteAddress?.replace('::ffff:', '');
      const instance = (await instances()).find(({ address }) => address === asking);
      if (!instance) return { status: 404, body: 'no instance has this address' };
      const { method = 'GET', headers } = request;
      return tell({ method, url: new URL(request.url ?? '/', 'http://metadata'), headers }, instance);
    };
    answer().then(
      ({ status, body, headers }) => response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(body),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
}
