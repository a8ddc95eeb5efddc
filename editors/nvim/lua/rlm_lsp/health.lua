-- `:checkhealth rlm_lsp`: checks that the server is found and runs; shows its version, its model and attached buffers.
local M = {}

local health = vim.health
local PATIENCE_MS = 60000

-- The output of `rlm-lsp` for some arguments; nil and the reason if it cannot be run.
local function output(program, ...)
  local started, run = pcall(vim.system, { program, ... }, { text = true })
  if not started then
    return nil, run
  end
  local done = run:wait(PATIENCE_MS)
  if done.code ~= 0 then
    return nil, vim.trim(done.stderr ~= '' and done.stderr or done.stdout)
  end
  return vim.trim(done.stdout)
end

local function check_server()
  local program = require('rlm_lsp').program()
  local path = vim.fn.exepath(program)
  if path == '' then
    health.error(('`%s` is not found'):format(program), {
      'Install it: run `pip install .` in a checkout of rlm-lsp, in an environment whose `bin` is on PATH.',
      "Or give its full path: `vim.lsp.config('rlm_lsp', { cmd = { '/path/to/rlm-lsp', 'serve' } })`.",
    })
    return
  end
  local version, reason = output(program, '--version')
  if not version then
    health.error(('`%s --version` fails: %s'):format(path, reason), 'Run it in a shell, or reinstall rlm-lsp.')
    return
  end
  health.ok(('%s (`%s`)'):format(version, path))
  local report, failure = output(program, 'doctor')
  if not report then
    health.error('the model cannot be used: ' .. failure, 'Run `rlm-lsp doctor` in a shell.')
    return
  end
  health.ok('model ' .. (report:match('\nmodel%s+([^\n]+)') or '(unnamed)'))
  health.info('output of `rlm-lsp doctor`:\n' .. report)
end

-- The model of a running server: its settings may choose another model than the shipped one.
local function check_model(client)
  local call = require('rlm_lsp').call
  local answer = call(client, 'request_sync', 'rlm-lsp/status', vim.empty_dict(), PATIENCE_MS, 0)
  local status = answer and answer.result
  if status and status.model and status.model ~= vim.NIL then
    health.ok('answers with the model ' .. status.model)
  else
    health.error('has no model: ' .. (answer and answer.err and answer.err.message or 'none could be loaded'), {
      "Check `model` in your settings and the server's log: `:RlmLspLog`. Test a model: `rlm-lsp doctor --model NAME`.",
    })
  end
end

local function check_clients()
  local clients = vim.lsp.get_clients({ name = 'rlm_lsp' })
  if #clients == 0 then
    health.info('Not running: open a file in a supported language.')
  end
  for _, client in ipairs(clients) do
    local buffers = vim.tbl_count(client.attached_buffers)
    local root = client.config.root_dir or 'no folder'
    health.ok(('running, positions in %s, buffers: %d, for %s'):format(client.offset_encoding, buffers, root))
    check_model(client)
  end
  if vim.lsp.inlay_hint.is_enabled() then
    health.ok('inlay hints are on')
  else
    health.warn('inlay hints are off', 'Enable them: `vim.lsp.inlay_hint.enable(true)`.')
  end
end

function M.check()
  health.start('rlm_lsp: Neovim')
  if vim.fn.has('nvim-0.10') == 0 then
    health.error('rlm-lsp needs Neovim 0.10 or later: older versions have no inlay hints')
    return
  end
  health.ok('Neovim ' .. tostring(vim.version()))
  health.start('rlm_lsp: session')
  check_clients()
  health.start('rlm_lsp: server')
  check_server()
end

return M
