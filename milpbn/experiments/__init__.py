"""The experiments of Peharz & Pernkopf (2012): protocol, methods, cells, runner, tables beside the published ones."""
