-- Extends Neovim's LSP client: toggles the hints of rlm-lsp separately from those of other servers, shows explanations,
-- and starts the server in Neovim 0.10. See `:help rlm_lsp`.
local M = {}

local NAME = 'rlm_lsp'
local SECTION = 'rlm-lsp'

-- Whether `:RlmLspToggle!` has hidden all hints.
local hidden = false

-- Whether the user knows that the server is missing.
local is_reported = false

-- Calls a method of a client; before 0.11, methods took no `self`.
function M.call(client, method, ...)
  if vim.fn.has('nvim-0.11') == 1 then
    return client[method](client, ...)
  end
  return client[method](...)
end

local function notify(text, level)
  vim.notify('rlm-lsp: ' .. text, level or vim.log.levels.INFO)
end

-- Runs a command of the server; `done` receives the result.
local function execute(client, bufnr, command, arguments, done)
  local params = { command = command, arguments = arguments }
  M.call(client, 'request', 'workspace/executeCommand', params, function(err, result)
    if err then
      notify(err.message, vim.log.levels.ERROR)
    else
      done(result)
    end
  end, bufnr)
end

local function send_settings(client)
  M.call(client, 'notify', 'workspace/didChangeConfiguration', { settings = client.settings or vim.empty_dict() })
end

-- Makes the servers read all settings again.
function M.settings_changed()
  vim.tbl_map(send_settings, vim.lsp.get_clients({ name = NAME }))
end

local function hide(client)
  local settings = vim.deepcopy(client.settings or {})
  settings[SECTION] = vim.tbl_extend('force', settings[SECTION] or {}, { hints = not hidden })
  client.settings = settings
  send_settings(client)
end

local function toggle_all()
  hidden = not hidden
  vim.tbl_map(hide, vim.lsp.get_clients({ name = NAME }))
  notify(hidden and 'hints are hidden in all files' or 'hints are shown')
end

local function toggle_buffer()
  local bufnr = vim.api.nvim_get_current_buf()
  local client = vim.lsp.get_clients({ name = NAME, bufnr = bufnr })[1]
  if not client then
    notify('not running in this buffer; see :checkhealth rlm_lsp', vim.log.levels.WARN)
  elseif hidden then
    notify('hints are hidden in all files; :RlmLspToggle! shows them')
  elseif not vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr }) then
    vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
    notify('hints of this file are shown')
  else
    local file = { file = vim.uri_from_bufnr(bufnr) }
    execute(client, bufnr, 'rlm-lsp.toggleHints', { file }, function(is_hidden)
      notify('hints of this file are ' .. (is_hidden and 'hidden' or 'shown'))
    end)
  end
end

-- Hides or shows the hints of rlm-lsp in the current buffer, or in all buffers. Hints of other servers do not change.
function M.toggle(all)
  if all then
    toggle_all()
  else
    toggle_buffer()
  end
end

-- Sets up a client that has attached to a buffer: when a server exits, Neovim disables the buffer's hints, even if they
-- are enabled for all buffers, and would leave them disabled when the server restarts.
function M.attached(client, bufnr)
  if client.name ~= NAME then
    return
  end
  if vim.lsp.inlay_hint.is_enabled() then
    vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
  end
  if hidden then
    hide(client)
  end
end

-- The program of the configuration: what starts, or would start, the server.
function M.program()
  local config = vim.fn.has('nvim-0.11') == 1 and vim.lsp.config[NAME] or nil
  local cmd = config and config.cmd or nil
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    cmd = client.config.cmd
  end
  return type(cmd) == 'table' and cmd[1] or 'rlm-lsp'
end

-- Whether a program of a configuration is missing, which is said once: Neovim 0.12 says nothing, 0.10 says it for each
-- buffer. `:checkhealth rlm_lsp` keeps saying what to do.
local function is_missing(cmd)
  local program = type(cmd) == 'table' and cmd[1] or nil
  if not program or vim.fn.executable(program) == 1 then
    return false
  end
  if not is_reported then
    is_reported = true
    notify(('no program `%s`; see :checkhealth rlm_lsp'):format(program), vim.log.levels.WARN)
  end
  return true
end

-- Reports a missing server when a buffer opens that would have had it.
function M.opened(bufnr)
  local is_enabled = vim.lsp.is_enabled and vim.lsp.is_enabled(NAME)
  if is_enabled and vim.tbl_contains(vim.lsp.config[NAME].filetypes or {}, vim.bo[bufnr].filetype) then
    is_missing(vim.lsp.config[NAME].cmd)
  end
end

-- The sentences of a notice that fit on one line, at least the first.
local function first_sentences(text)
  while vim.fn.strdisplaywidth(text) > vim.o.columns do
    local shorter = text:match('^(.*%.) .*%.$')
    if not shorter then
      break
    end
    text = shorter
  end
  return text
end

-- Shows a text in a small window below the others, which covers no code. It closes with the first edit, or with the buffer.
local function show_below(text)
  local source, lines = vim.api.nvim_get_current_buf(), vim.split(text, '\n')
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / vim.o.columns))
  end
  local window = vim.api.nvim_open_win(bufnr, false, { split = 'below', win = -1, height = height, style = 'minimal' })
  vim.wo[window].wrap, vim.wo[window].linebreak, vim.wo[window].winfixheight = true, true, true
  vim.wo[window].statusline = ' closes with the first edit'
  local function close()
    pcall(vim.api.nvim_win_close, window, true)
  end
  vim.api.nvim_create_autocmd({ 'InsertEnter', 'TextChanged', 'BufLeave', 'BufUnload', 'QuitPre' }, {
    -- Neovim 0.12 calls it `buf` and will drop the former name.
    [vim.fn.has('nvim-0.12') == 1 and 'buf' or 'buffer'] = source,
    once = true,
    callback = function(event)
      -- At once: else the window would keep Neovim from quitting.
      if event.event == 'QuitPre' then
        close()
      else
        vim.schedule(close)
      end
    end,
  })
end

-- Shows a message of the server. Information may be longer than the command line, which would then wait for a key.
function M.show_message(err, params, ctx)
  if params.type ~= vim.lsp.protocol.MessageType.Info then
    return vim.lsp.handlers['window/showMessage'](err, params, ctx)
  end
  -- Notices begin with the name of the program; a command to copy is shown in full.
  show_below(vim.startswith(params.message, SECTION) and first_sentences(params.message) or params.message)
end

-- Requests the hints of a client's buffers again and redraws their lines. Neovim draws the hints of a line once per
-- version of a text (0.10 never again; 0.12 not if it redraws before the response), but the hints of a version arrive
-- only when the model has answered.
function M.refresh_hints(_, _, ctx)
  local client = vim.lsp.get_client_by_id(ctx.client_id)
  for bufnr in pairs(client and client.attached_buffers or {}) do
    if vim.lsp.inlay_hint.is_enabled({ bufnr = bufnr }) then
      vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
    end
  end
  return vim.NIL
end

-- Starts the server for a buffer, or attaches the running one, in Neovim 0.10, which has no `vim.lsp.enable`.
-- `overrides` are fields of `vim.lsp.start`.
function M.start(bufnr, overrides)
  local config = dofile(vim.api.nvim_get_runtime_file('lsp/rlm_lsp.lua', false)[1])
  config = vim.tbl_deep_extend('force', config, { name = NAME }, overrides or {})
  if is_missing(config.cmd) then
    return nil
  end
  config.root_dir = config.root_dir or vim.fs.root(bufnr, config.root_markers)
  return vim.lsp.start(config, { bufnr = bufnr })
end

-- Shows the latest lines of the server's log.
function M.show_log()
  local client = vim.lsp.get_clients({ name = NAME })[1]
  if not client then
    notify('not running; see :checkhealth rlm_lsp', vim.log.levels.WARN)
    return
  end
  execute(client, 0, 'rlm-lsp.showLog', nil, function(text)
    vim.cmd.new()
    vim.bo.buftype, vim.bo.bufhidden, vim.bo.swapfile = 'nofile', 'wipe', false
    vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, '\n'))
    vim.bo.modifiable = false
  end)
end

local function client_of(ctx)
  return vim.lsp.get_client_by_id(ctx.client_id)
end

-- Handles a code lens and two code actions: shows the lines that affect a prediction most, or the costs on all GPUs, in a
-- floating window.
function M.explain(command, ctx)
  execute(client_of(ctx), ctx.bufnr, command.command, command.arguments, function(result)
    vim.lsp.util.open_floating_preview(vim.split(result.markdown, '\n'), 'markdown', { focus_id = NAME })
  end)
end

-- Copies a text to the unnamed register and, if available, to the clipboard.
local function copy(text)
  vim.fn.setreg('"', text)
  if vim.fn.has('clipboard') == 1 then
    vim.fn.setreg('+', text)
  end
end

-- Handles a code action: copies the predictions of a unit.
function M.copy_json(command, ctx)
  execute(client_of(ctx), ctx.bufnr, command.command, command.arguments, function(result)
    copy(result)
    notify('predictions copied as JSON')
  end)
end

-- Handles a code action: copies the command that measures a package, which the server also shows. Nothing is run.
function M.copy_measure_command(command, ctx)
  execute(client_of(ctx), ctx.bufnr, command.command, command.arguments, function(result)
    copy(result)
    notify('the command is copied; run it in a shell')
  end)
end

return M
