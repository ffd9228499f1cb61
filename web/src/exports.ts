import { type GetExportURL, hasArrayShape, hasNumericType } from '@h5web/app';

import { queryOf, type Shown } from './model';

const FORMATS: readonly string[] = ['npy', 'tiff'];

// Of what h5grove writes; what h5web writes by itself is left to it.
export function exportUrl(name: string, shown: Shown): GetExportURL {
  return (format, dataset, selection, builtInExporter) => {
    if (builtInExporter !== undefined || !FORMATS.includes(format)) return undefined;
    if (!hasArrayShape(dataset) || !hasNumericType(dataset)) return undefined;
    const query = new URLSearchParams({ file: name, path: dataset.path, format, ...queryOf(shown) });
    if (selection !== undefined) query.set('selection', selection);
    return new URL(`${location.origin}/api/h5/data?${query.toString()}`);
  };
}
