import { enableCompileCache, flushCompileCache } from 'node:module';

// An engine starts a plugin for every run, and stripping types takes longer than all the rest of the start.
enableCompileCache();
const { serve } = await import('./serve.ts');
await serve(process.argv.slice(2));
// The engine kills plugins: nothing would be written at the end.
flushCompileCache();
