// SPDX-License-Identifier: MIT
#pragma once
/// \file settings.h
/// The runners of whole builds share this: they read configurations the same way, and begin lines about them alike.

#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gnnd/detail/params_table.h"
#include "gnnd/detail/process_memory.h"
#include "gnnd/error.h"
#include "gnnd/vectors.h"

namespace gnnd::benchs {

/// "a=1,b=2", to be taken one by one.
class Settings {
  public:
    explicit Settings(const std::string& text) {
        std::stringstream stream(text);
        for (std::string item; std::getline(stream, item, ',');) {
            const auto equals = item.find('=');
            if (equals == std::string::npos || item.find('=', equals + 1) != std::string::npos)
                throw InvalidArgument("setting '" + item + "' is not of the form name=value");
            values_[item.substr(0, equals)] = item.substr(equals + 1);
        }
    }

    /// Calls assign with the value if it was given.
    template <class Assign>
    void take(const char* name, Assign assign) {
        if (const auto it = values_.find(name); it != values_.end()) {
            assign(it->second);
            values_.erase(it);
        }
    }

    /// Every field by its name; samples and list_size also as "p" and "list", as lines of the notebook call them.
    void take(BuildParams& p) {
        detail::for_each_field([&]<class T>(const detail::Field<T>& field) {
            take(field.name, [&](const std::string& text) { detail::parse(text, p.*field.member); });
        });
        take("p", [&](const std::string& text) { detail::parse(text, p.samples); });
        take("list", [&](const std::string& text) { detail::parse(text, p.list_size); });
    }

    /// \throws InvalidArgument for a setting that no take() has asked for
    void end(const std::string& what) const {
        if (!values_.empty()) throw InvalidArgument(what + " has no setting '" + values_.begin()->first + "'");
    }

  private:
    std::map<std::string, std::string> values_;
};

/// Of the sources, as git describes them; "unknown" where they are not in a repository.
inline std::string commit() {
    std::string hash;
    if (FILE* git = popen("git -C '" GNND_SOURCE_DIR "' describe --always --dirty 2>/dev/null", "r")) {
        for (int c; (c = std::fgetc(git)) != EOF && c != '\n';) hash += char(c);
        pclose(git);
    }
    return hash.empty() ? "unknown" : hash;
}

/// The most memory that this process has taken since this was made, beside what it had then.
class PeakMemory {
  public:
    /// VmHWM starts again from the present size; memory that was freed before goes back first, or it would be missing
    /// from the peak.
    PeakMemory() {
        malloc_trim(0);
        std::ofstream("/proc/self/clear_refs") << "5";
        before_ = detail::process_memory("VmRSS");
    }
    std::int64_t bytes() const { return detail::process_memory("VmHWM") - before_; }

  private:
    std::int64_t before_ = 0;
};

/// data: a file's path or name, of which the last part is printed
inline nlohmann::json describe(const std::string& data, const VectorView& vectors, Metric metric, int k,
                               const std::string& configuration) {
    return {{"data", data.substr(data.find_last_of('/') + 1)},
            {"n", vectors.n},
            {"d", vectors.d},
            {"dtype", name_of(vectors.dtype)},
            {"metric", name_of(metric)},
            {"k", k},
            {"configuration", configuration}};
}

}  // namespace gnnd::benchs
